"""How far is it? Shown on a terminal once it has taken two seconds, and never in a pipe."""

from __future__ import annotations

import atexit
import sys
import time
from typing import Any

import click

from trueodds.core.printable import printable

PATIENCE = 2.0  # seconds before anything is shown


class Progress:
    """A callable for the library's `progress=`; leaving the block removes what was shown."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._enabled = sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def __call__(self, share: float, doing: str = "") -> None:
        """The share that is done, and what is going on."""
        if not self._enabled or time.monotonic() - self._begun < PATIENCE:
            return
        doing = printable(doing)
        if not self._shown:
            self._start()
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=doing)
        else:
            click.echo(f"\r\x1b[K{100 * share:3.0f} % {doing}", nl=False, err=True)

    def rows(self, done: int, total: int | None) -> None:
        """The same for rows, of which the number may not be known."""
        self(done / total if total else 0.0, f"{done:,} rows")

    def _start(self) -> None:
        self._shown = True
        try:
            from rich.console import Console
            from rich.progress import Progress as Bar
        except ImportError:
            return
        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=1.0)
        self._bar.start()
        atexit.register(self._bar.stop)  # a signal that ends the process at once must not leave the cursor hidden
