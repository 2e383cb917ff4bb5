"""Run the command `trueodds` as `python -m trueodds`; a signal ends it at any time by its exit code, without traceback.

SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, so that the counts so far are kept and incomplete files are
removed. During an import they end the process at once, because C libraries may lose an exception there; so does a
second signal. A process that still runs some seconds later, because the exception was lost or a lock was not
released, ends too.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False  # nothing is loaded here that takes time: before `run` an interrupt is a traceback
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

# New objects between two searches for unused cycles. With Python's default (700, or 2000 from version 3.13 on), an
# audit of few rows takes a tenth longer. Its memory is the same: arrays are seldom part of a cycle.
_GC_THRESHOLD = 500_000
_GRACE_SECONDS = 5.0  # time to keep the counts and to remove files after the first signal
_received_signal = 0  # the number of the first signal


def run() -> NoReturn:
    """Run the command, then end the process: the entry point of the script `trueodds`."""
    import gc

    code: Any = 0
    try:
        _install_signal_handlers()
        gc.set_threshold(_GC_THRESHOLD)
        from trueodds.cli import main

        main()
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        _print_and_exit()
    if _received_signal:
        _exit_with_signal_code()
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the output is complete
    if sys.getprofile() or sys.gettrace() or not isinstance(code, int):
        sys.exit(code)
    _exit_now(code)


def _install_signal_handlers() -> None:
    import signal

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup and background jobs ignore some of these signals, and must continue to do so
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _on_signal)
    sys.unraisablehook = _on_unraisable


def _on_signal(number: int, frame: FrameType | None) -> None:
    global _received_signal
    second, _received_signal = _received_signal > 0, _received_signal or number
    while frame is not None and not second:
        second = frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    if second:
        _print_and_exit()
    _thread.start_new_thread(_exit_after_grace, ())
    raise KeyboardInterrupt


def _exit_after_grace() -> None:
    """End the process if it has not ended by itself; nothing is called that could wait for a lock."""
    time.sleep(_GRACE_SECONDS)
    os.write(2, b"stopped\n")
    os._exit(128 + _received_signal)


def _on_unraisable(lost: Any) -> None:
    """Print an exception raised in a callback, and continue; an interrupt ends the process."""
    if _received_signal and issubclass(lost.exc_type, KeyboardInterrupt):
        _print_and_exit()
    sys.__unraisablehook__(lost)


def _print_and_exit() -> NoReturn:
    from contextlib import suppress

    with suppress(OSError):
        os.write(2, b"stopped\n")
    _exit_with_signal_code()


def _exit_with_signal_code() -> NoReturn:
    """End the process with the exit code of the signal; `sys.exit` might end it by the signal itself, without code."""
    _exit_now(128 + (_received_signal or 2))


def _exit_now(code: int) -> NoReturn:
    """Call the functions registered with `atexit`, flush the output, and end the process.

    Python would first release every object and library, which takes a fifth of a second after an audit.
    """
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
