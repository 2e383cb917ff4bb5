"""Is progress shown on a terminal after two seconds, and nowhere else? Are colors only where they are wanted?"""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from trueodds.cli import output
from trueodds.core import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if rich were not installed
    return now


def shown(monkeypatch: pytest.MonkeyPatch, stream: Any, clock: list[float], after: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.ProgressBar() as report:
        clock[0] += after
        report(0.42, "redrawing labels")
        progress.report_in_rows(report)(1_000, 4_000)
    return str(stream.getvalue())


def test_a_terminal_sees_it_after_two_seconds(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    text = shown(monkeypatch, Terminal(), clock, 2.1)
    assert "42 % redrawing labels" in text
    assert "25 % 1,000 rows" in text


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    assert shown(monkeypatch, Terminal(), clock, 1.9) == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    assert shown(monkeypatch, io.StringIO(), clock, 60) == ""


def test_rich_draws_it_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_SHOWN", 0.0)
    with progress.ProgressBar() as report:
        report(0.5, "redrawing labels")
    assert "redrawing labels" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, stream: Any, environment: dict[str, str], expected: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.uses_colors(stream) is expected


def test_paint_colors_and_plain_roles_stay_plain() -> None:
    assert output.colorize("x", "bad") == "\x1b[31m\x1b[1mx\x1b[0m"
    assert output.colorize("x", "plain").startswith("x")
