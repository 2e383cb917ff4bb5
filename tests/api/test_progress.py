"""Do calls from Python show a bar on a terminal, and does the function of a caller receive the same reports?"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.api.simulated import grouped
from trueodds.core import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> io.StringIO:
    """The stream that stands in for stderr, without rich and without a delay."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    return stream


def call(verb: str, reports: object = None) -> None:
    preds = grouped()
    if verb == "audit":
        to.audit(preds, resamples=39, progress=reports)
    elif verb == "by_group":
        to.by_group(preds, resamples=39, progress=reports)
    elif verb == "test":
        to.test(preds, resamples=39, progress=reports)
    elif verb == "table":
        to.table({"a": preds, "b": preds}, ["brier", "ece"], resamples=39, progress=reports)
    elif verb == "power":
        to.power(preds, n=50, simulations=20, progress=reports)
    else:
        to.tally(preds, progress=reports)


VERBS = ("audit", "by_group", "test", "power", "tally", "table")


@pytest.mark.parametrize("verb", VERBS)
def test_a_terminal_shows_what_is_done_and_is_clean_afterwards(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch, Terminal())
    call(verb)
    text = terminal.getvalue()
    assert "100 %" in text
    assert text.endswith("\r\x1b[K")


@pytest.mark.parametrize("verb", VERBS)
def test_false_shows_nothing(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch, Terminal())
    call(verb, False)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_is_told_fraction_and_step_and_replaces_the_bar(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch, Terminal())
    reports: list[tuple[float, str]] = []
    call(verb, lambda share, step: reports.append((share, step)))
    shares = [share for share, _ in reports]
    assert all(a <= b + 1e-9 for a, b in pairwise(shares))
    assert shares[-1] == pytest.approx(1.0)
    assert all(isinstance(step, str) and step for _, step in reports)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verb", VERBS)
def test_anything_else_is_refused(verb: str) -> None:
    with pytest.raises(to.InputError, match="TO203"):
        call(verb, "yes")


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_that_cannot_be_called_with_fraction_and_step_is_refused(verb: str) -> None:
    """`progress=len` raised TypeError."""
    with pytest.raises(to.InputError, match=r"TO203.*progress could not be called"):
        call(verb, len)


@pytest.mark.parametrize("verb", [to.audit, to.by_group, to.test, to.power, to.tally])
def test_it_is_refused_before_any_data_are_read(verb: Callable[..., object]) -> None:
    with pytest.raises(to.InputError, match="TO203"):
        verb("no such file.csv", progress="yes")


def test_it_is_refused_with_a_tally_that_needs_no_progress() -> None:
    counted = to.tally(grouped())
    for verb in (to.test, to.tally):
        with pytest.raises(to.InputError, match="TO203"):
            verb(counted, progress="yes")


@pytest.mark.parametrize("stream", [None, object()])
def test_a_program_without_a_console_sees_nothing_and_works(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    shown: list[bool] = []
    with progress.ProgressBar() as bar:
        bar(0.5, "simulating labels")
        shown.append(bar._visible)
    assert shown == [False]


def test_a_bar_leaves_nothing_for_the_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    calls: list[tuple[str, object]] = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setattr(progress.atexit, "register", lambda stop: calls.append(("register", stop)))
    monkeypatch.setattr(progress.atexit, "unregister", lambda stop: calls.append(("unregister", stop)))
    call("test")
    assert [name for name, _ in calls] == ["register", "unregister"]
    assert calls[0][1] == calls[1][1]


def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = watched(monkeypatch, io.StringIO())
    call("test")
    assert stream.getvalue() == ""


def test_a_bar_appears_during_a_long_step_that_reports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # An audit of 300,000 rows showed nothing for four seconds, because the first steps had not ended.
    terminal = watched(monkeypatch, Terminal())
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.1)
    with progress.ProgressBar() as bar:
        bar(0.25, "reading")
        deadline = time.monotonic() + 10
        while not terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert " 25 % reading" in terminal.getvalue()
    written = terminal.getvalue()
    assert written.endswith(progress._CLEAR_LINE)
    bar(0.5, "too late")
    assert terminal.getvalue() == written


def test_a_notebook_shows_the_line_without_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = watched(monkeypatch, io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    call("test")
    assert "simulating labels" in stream.getvalue()


def test_a_first_compilation_is_announced_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel that is in no cache is compiled inside a call."""
    from trueodds.kernels.compilation import KernelCache

    terminal = watched(monkeypatch, Terminal())
    source = tmp_path / "twice.py"
    source.write_text("def twice(x):\n    return 2 * x\n", encoding="utf-8")
    space: dict[str, object] = {}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), space)
    import numba

    kernel = numba.njit(space["twice"])
    with progress.report_progress(None) as say:
        say(0.25, "resampling rows")
        kernel._cache = KernelCache(space["twice"])  # type: ignore[arg-type]
        assert kernel(np.float64(3)) == 6
    assert "25 % resampling rows (compiling, in the first run only)" in terminal.getvalue()


@pytest.mark.parametrize("shown", [True, False])
def test_a_long_compilation_without_a_bar_is_announced_once(monkeypatch: pytest.MonkeyPatch, shown: bool) -> None:
    terminal = watched(monkeypatch, Terminal() if shown else io.StringIO())
    monkeypatch.setattr(progress, "_compilation_notice", progress.CompilationNotice())
    progress.announce_compilation()
    progress.announce_compilation()
    assert terminal.getvalue() == "trueodds: compiling, in the first run only\n" * shown


def test_short_compilations_without_a_bar_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of two calls are not added up."""
    terminal, now = watched(monkeypatch, Terminal()), [0.0]
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 2.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    notice = progress.CompilationNotice()
    for now[0] in (100.0, 101.0, 110.0, 111.5):
        notice.announce()
    assert terminal.getvalue() == ""


def test_nothing_announces_a_compilation_with_progress_false(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch, Terminal())
    monkeypatch.setattr(progress, "_compilation_notice", progress.CompilationNotice())
    with progress.report_progress(False):
        progress.announce_compilation()
    assert terminal.getvalue() == ""


def test_a_silent_call_within_another_leaves_the_bar_of_the_other_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch, Terminal())
    with progress.report_progress(None) as report, progress.report_progress(False):
        report(0.25, "resampling rows")
        progress.announce_compilation()
    assert "resampling rows (compiling, in the first run only)" in terminal.getvalue()
