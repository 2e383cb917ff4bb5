"""Does Ctrl-C end a call soon, also while kernels are compiled and while helper threads work?"""

import os
import signal
import threading
import time

import numba
import pytest

from trueodds.kernels import compile_kernel, map_blocks
from trueodds.kernels.parallel import is_abandoned


def end_while_a_helper_computes(work, error, monkeypatch):
    """Raise an error in the calling thread as soon as a helper thread has begun to `work`."""
    monkeypatch.setenv("TRUEODDS_THREADS", "2")
    caller, has_begun = threading.get_ident(), threading.Event()

    def raise_or_work(start, _stop):
        if threading.get_ident() == caller:
            assert has_begun.wait(10)
            raise error
        has_begun.set()
        work()

    map_blocks(raise_or_work, 2, 1)


def wait_until_abandoned():
    deadline = time.monotonic() + 10
    while not is_abandoned() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert is_abandoned()


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_after_an_interrupt_a_helper_thread_does_not_compile(monkeypatch, tmp_path):
    # Ctrl-C during a first compilation once waited until the helper thread had compiled the same kernel.
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # not the cache of an earlier run
    kernel = compile_kernel(lambda: 1)

    def compile_late():
        wait_until_abandoned()
        kernel()

    with pytest.raises(KeyboardInterrupt):
        end_while_a_helper_computes(compile_late, KeyboardInterrupt, monkeypatch)
    assert not kernel.signatures
    assert kernel() == 1


def test_the_first_error_is_raised_and_not_what_it_causes_in_a_helper_thread(monkeypatch):
    def fail_late():
        wait_until_abandoned()
        raise RuntimeError("later")

    with pytest.raises(ValueError, match="first"):
        end_while_a_helper_computes(fail_late, ValueError("first"), monkeypatch)
    assert not is_abandoned()
    assert map_blocks(lambda _a, _b: is_abandoned(), 2, 1) == [False, False]


@pytest.fixture
def compile_and_call(monkeypatch, tmp_path):
    """Return a function that compiles a kernel, and calls another function meanwhile."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # not the cache of an earlier run
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores the signal

    def compile_while(function):
        kernel = compile_kernel(lambda: 1)
        add_overload = kernel.add_overload
        monkeypatch.setattr(kernel, "add_overload", lambda compiled: [function(), add_overload(compiled)])
        return kernel()

    yield compile_while
    signal.signal(signal.SIGINT, handler)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_an_interrupt_during_a_compilation_is_raised_at_its_end_and_not_in_a_callback(compile_and_call):
    # In a callback of llvmlite it was printed and ignored, so that an audit continued; elsewhere, a lock stayed locked.
    passed = []

    def interrupt():
        signal.raise_signal(signal.SIGINT)
        passed.append("not raised here")

    with pytest.raises(KeyboardInterrupt):
        compile_and_call(interrupt)
    assert passed == ["not raised here"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert compile_and_call(lambda: None) == 1


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_an_interrupt_is_raised_once_the_calling_kernel_is_compiled(compile_and_call):
    steps = []

    def compile_inner():
        signal.raise_signal(signal.SIGINT)
        compile_kernel(lambda: 1)()
        steps.append("compiled")

    with pytest.raises(KeyboardInterrupt):
        compile_and_call(compile_inner)
    assert steps == ["compiled"]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_the_signal_handler_of_a_program_is_left_alone(compile_and_call):
    received = []
    signal.signal(signal.SIGINT, lambda number, _frame: received.append(number))
    assert compile_and_call(lambda: signal.raise_signal(signal.SIGINT)) == 1
    assert received == [signal.SIGINT]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_ctrl_c_works_after_a_compilation_that_failed(compile_and_call):
    def fail():
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        compile_and_call(fail)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
