"""Show the progress of long calls on a terminal or in a notebook."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

from trueodds.core.printable import to_printable

Progress = Callable[[float, str], None]  # called with the fraction that is done and the name of the current step
SECONDS_BEFORE_SHOWN = 2.0  # seconds before anything is shown
_CLEAR_LINE = "\r\x1b[K"
_COMPILATION_REMARK = "compiling, in the first run only"
_active_bars: list[ProgressBar] = []  # the bars of the calls in progress, the innermost last


def report_progress(progress: Progress | bool | None) -> AbstractContextManager[Progress]:
    """Return a context manager that yields the function to which a call reports its progress.

    Parameters
    ----------
    progress : bool or callable, optional
        By default, a call that takes longer than two seconds shows a bar on a terminal or in a notebook; False turns it
        off. A function is called with the fraction of the work that is done, from 0 to 1, and the name of the current
        step.

    Raises
    ------
    InputError
        TO203 for anything else, at once, so that a call can check it before its work begins, and if the function cannot
        be called.

    >>> with report_progress(lambda share, step: print(f"{share:.0%} {step}")) as say:
    ...     say(0.5, "simulating labels")
    50% simulating labels
    """
    from trueodds.core.settings import call_user_function, check  # not needed before a call, and it imports numpy

    check("progress", progress, Callable[..., Any] | bool | None)
    if progress is False:
        return _without_bar(_ignore_progress)
    return _without_bar(partial(call_user_function, "progress", progress)) if callable(progress) else ProgressBar()


def report_in_rows(report: Progress, end: float = 1.0) -> Callable[[int, int | None], None]:
    """Return a function of the rows done and of their total that reports a fraction up to `end`.

    If the total is unknown, the fraction stays 0.

    >>> say = report_in_rows(lambda share, step: print(share, step), end=0.5)
    >>> say(1_000, 4_000)
    0.125 1,000 rows read
    >>> say(1_000, None)
    0.0 1,000 rows read
    """

    def report_rows(rows_done: int, n_rows: int | None) -> None:
        report(end * rows_done / n_rows if n_rows else 0.0, f"{rows_done:,} rows read")

    return report_rows


def announce_compilation() -> None:
    """Mention in the innermost bar that code is being compiled, or on a line of its own outside calls with progress.

    A line is written once per process, if compilation takes more than two seconds.
    """
    calls = list(_active_bars)  # a copy, because another thread may end its call at any time
    for bar in [call for call in calls if call.enabled][-1:]:
        bar.announce(_COMPILATION_REMARK)
    if not calls:
        _compilation_notice.announce()


class CompilationNotice:
    """Writes to stderr, once and on a terminal or in a notebook, that code is being compiled."""

    _MAX_GAP = 5.0  # seconds between the starts of two compilations of the same call

    def __init__(self) -> None:
        self._first_start = self._last_start = -self._MAX_GAP
        self._is_written = False

    def announce(self) -> None:
        """Note that a compilation starts, and write the line if the call has been compiling for two seconds."""
        now = time.monotonic()
        if now - self._last_start > self._MAX_GAP:
            self._first_start = now
        self._last_start = now
        if self._is_written or now - self._first_start < SECONDS_BEFORE_SHOWN:
            return
        self._is_written = True
        if _on_terminal() or _in_notebook():
            sys.stderr.write(f"trueodds: {_COMPILATION_REMARK}\n")
            sys.stderr.flush()


_compilation_notice = CompilationNotice()


@contextmanager
def _without_bar(report: Progress) -> Iterator[Progress]:
    """Yield a function that takes the reports of progress, and show nothing meanwhile."""
    with ProgressBar(enabled=False):
        yield report


def _ignore_progress(_share: float, _step: str) -> None:
    """Take a report of progress and do nothing, for ``progress=False``."""


class ProgressBar:
    """A context manager with a progress bar on stderr for calls of more than two seconds.

    The bar is shown on terminals and in notebooks, never in a pipe, and is removed at the end of the block.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._start_time = time.monotonic()
        self.enabled = enabled and (_on_terminal() or _in_notebook())
        self._bar: Any = None  # the bar of rich, once it is shown
        self._task: Any = None  # the task of that bar
        self._visible = False
        self._share = 0.0
        self._step = ""
        self._text = ""  # the step, with a remark if there is one
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None  # shows the bar during a first step that takes long

    def __enter__(self) -> ProgressBar:
        _active_bars.append(self)
        if self.enabled:
            self._timer = threading.Timer(SECONDS_BEFORE_SHOWN, self._show_late)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *ended: object) -> None:
        _active_bars.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self.enabled = False
            if self._bar is not None:
                self._bar.stop()
                atexit.unregister(self._bar.stop)
            elif self._visible:
                self._write(_CLEAR_LINE)

    def __call__(self, share: float, step: str = "") -> None:
        """Show the fraction that is done and the current step."""
        self._share, self._step = share, to_printable(step)
        self._text = self._step
        self._show()

    def announce(self, remark: str) -> None:
        """Add a remark to the current step until the next one is reported."""
        self._text = f"{self._step} ({remark})" if self._step else remark
        self._show()

    def _show_late(self) -> None:
        """Show the progress from the thread of the timer, unless the stream was closed meanwhile."""
        with suppress(OSError, ValueError):
            self._show()

    def _show(self) -> None:
        """Show the progress and the name of the step, once the call has taken long enough."""
        if time.monotonic() - self._start_time < SECONDS_BEFORE_SHOWN:
            return
        with self._lock:
            if not self.enabled:
                return
            if not self._visible:
                self._start()
            if self._bar is not None:
                self._bar.update(self._task, completed=self._share, description=self._text)
            else:
                self._write(f"{_CLEAR_LINE}{100 * self._share:3.0f} % {self._text}")

    def _start(self) -> None:
        """Start a bar on a terminal if rich is installed; otherwise a plain line is written."""
        self._visible = True
        if not _on_terminal():
            return  # a notebook shows the plain line; the bar would need its widgets
        try:
            from rich.console import Console
            from rich.progress import Progress as Bar
        except ImportError:
            return
        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._text, total=1.0)
        self._bar.start()
        atexit.register(self._bar.stop)  # a signal that ends the process at once must not leave the cursor hidden

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _on_terminal() -> bool:
    """Return whether stderr is a terminal; programs without a console have none, and some replace it."""
    stream = sys.stderr
    return stream is not None and not getattr(stream, "closed", False) and hasattr(stream, "isatty") and stream.isatty()


def _in_notebook() -> bool:
    """Return whether the process is the kernel of a Jupyter notebook."""
    return "ipykernel" in sys.modules
