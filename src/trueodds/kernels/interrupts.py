"""End the compilation of a kernel soon after Ctrl-C, between two of its steps.

If the KeyboardInterrupt of a Ctrl-C is raised anywhere within a compilation, it can be lost, because callbacks of
llvmlite ignore exceptions, and locks of numba and llvmlite can stay locked, so that helper threads would wait forever.
"""

from __future__ import annotations

import signal
import threading
from functools import cache
from typing import Any

from numba.core import event

from trueodds.kernels.parallel import is_abandoned


@cache
def watch_compilations() -> None:
    """Register the listener to all compilations of this process, including those of other libraries, once."""
    listener = CompilationListener()
    event.register("numba:compile", listener)
    event.register("numba:run_pass", listener)


class CompilationListener(event.Listener):
    """Raises KeyboardInterrupt between two steps of a compilation whose result is no longer needed.

    In the main thread, Ctrl-C is noted during a compilation, unless the program has a signal handler of its own. Helper
    threads do not notice Ctrl-C, and stop at the next step once their call has failed.
    """

    def __init__(self) -> None:
        self._n_compilations = 0  # in the main thread, of which each but the first is part of another
        self._is_interrupted = False

    def on_start(self, started: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            if is_abandoned():
                raise KeyboardInterrupt
            return
        if started.kind == "numba:compile":
            if self._n_compilations == 0:
                self._is_interrupted = False
            self._n_compilations += 1
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._note_interrupt)
        self._raise_interrupt()

    def on_end(self, ended: Any) -> None:
        """Restore Python's handler of Ctrl-C if the outermost compilation ends, and raise what was noted."""
        if ended.kind == "numba:compile" and threading.current_thread() is threading.main_thread():
            self._n_compilations = max(0, self._n_compilations - 1)  # numba ends a compilation that did not start, too
            if self._n_compilations == 0 and signal.getsignal(signal.SIGINT) == self._note_interrupt:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                self._raise_interrupt()

    def _note_interrupt(self, _number: int, _frame: Any) -> None:
        self._is_interrupted = True

    def _raise_interrupt(self) -> None:
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt
