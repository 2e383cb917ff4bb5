"""Are blocks of work shared out so that nothing depends on who did what?"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from trueodds.core.errors import InputError
from trueodds.kernels import as_plain_array, count_threads, map_blocks, sum_blocks
from trueodds.kernels.row_statistics import confidence_sums


@pytest.fixture(params=["1", "2", "3"])
def some_threads(request, monkeypatch):
    monkeypatch.setenv("TRUEODDS_THREADS", request.param)
    return int(request.param)


def test_the_number_of_threads_is_that_of_the_environment(some_threads):
    assert count_threads() == some_threads


@pytest.mark.parametrize("total", [0, 1, 9, 10, 11, 95])
def test_blocks_come_in_order_and_cover_everything_once(total, some_threads):
    blocks = map_blocks(lambda a, b: list(range(a, b)), total, 10)
    assert [i for block in blocks for i in block] == list(range(total))
    assert all(len(block) == 10 for block in blocks[:-1])


def test_blocks_withmap_blocks_end(some_threads):
    lengths = map_blocks(lambda a, b: sum(map_blocks(lambda c, d: d - c, b - a, 2)), 12, 3)
    assert lengths == [3, 3, 3, 3]


def test_an_error_in_a_block_is_raised_and_the_next_call_works(some_threads):
    def work(a, b):
        if a == 20:
            raise ValueError("block 2")
        return a

    with pytest.raises(ValueError, match="block 2"):
        map_blocks(work, 100, 10)
    assert map_blocks(lambda a, b: a, 30, 10) == [0, 10, 20]


def test_several_callers_share_the_threads(some_threads):
    results: dict[int, list[int]] = {}
    callers = [
        threading.Thread(target=lambda i=i: results.update({i: map_blocks(lambda a, b: a + i, 50, 5)}))
        for i in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == {i: [a + i for a in range(0, 50, 5)] for i in range(8)}


def test_sums_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 100_000), rng.integers(0, 3, 100_000)
    sums = []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("TRUEODDS_THREADS", n_threads)
        sums.append(confidence_sums(P, y, np.arange(16) / 15, "right")[0])
    assert np.array_equal(sums[0], sums[1])
    assert np.array_equal(sums[0], sums[2])


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_sum_blocks_adds_every_row_once(total):
    def add(start, stop, out):
        out[0] += stop - start
        out[1] += sum(range(start, stop))

    assert sum_blocks(add, total, (2,), block=3).tolist() == [total, sum(range(total))]


def test_plain_arrays_are_read_only_and_of_one_layout():
    for x in (np.zeros((3, 4), order="F"), np.zeros((6, 4))[::2], np.zeros((3, 4), dtype=np.float16)):
        array = as_plain_array(x)
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        assert array.dtype == (np.float32 if x.dtype == np.float16 else np.float64)
    ready = np.zeros((3, 4))
    assert as_plain_array(ready).base is ready


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is that run")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_computes_too():
    code = (
        "import os, numpy as np\n"
        "from trueodds.kernels import map_blocks\n"
        "first = map_blocks(lambda a, b: a, 40, 10)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if map_blocks(lambda a, b: a, 40, 10) == first else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, encoding="utf-8"
    )
    assert run.stdout.strip() == "0"


# What takes plain Python minutes: results on any number of threads, and of hundreds of thousands of rows. Each of these
# kernels has tests of fewer rows as well.
SLOW_IN_PYTHON = (
    "threads or 16_bits or 524288 or 524291 or 262143 or 262145 or 163840 or 70000 or 40000 or 32767 or 32768 or 32769"
    " or 3000 or 1500 or equally_bad or no_run_overflows"
)


@pytest.mark.slow
@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is that run")
def test_every_kernel_is_also_plain_python():
    tests = [str(Path(__file__).parent), "-k", f"not ({SLOW_IN_PYTHON})"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "TRUEODDS_NO_SKIPS": ""},
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout[-3000:]


@pytest.mark.parametrize("setting", ["0", "-1", "abc", "1.5"])
def test_an_invalid_number_of_threads_is_an_error_that_names_the_variable(monkeypatch, setting):
    monkeypatch.setenv("TRUEODDS_THREADS", setting)
    with pytest.raises(
        InputError, match=f"TO203.*variable TRUEODDS_THREADS must be a positive integer. Got '{setting}'"
    ):
        count_threads()


@pytest.mark.parametrize("setting", ["0", "abc"])
def test_an_invalid_number_of_threads_of_numba_is_an_error_that_names_the_variable(setting):
    # "Number of threads specified must be > 0." was raised in every call.
    code = "import trueodds as to; to.measure([0, 1], [0.2, 0.9], 'brier', interval=None)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_NUM_THREADS": setting},
        encoding="utf-8",
    )
    text = "[TO203] The environment variable NUMBA_NUM_THREADS must be a positive integer. Got "
    assert f"{text}{setting!r}. Unset it, or set NUMBA_NUM_THREADS=1." in run.stderr
