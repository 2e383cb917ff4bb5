"""Does `audit --brief` print the top of the report alone, and does every command keep to the width of a terminal?"""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from trueodds.cli import output
from trueodds.reports.text.terminal import render_brief


@pytest.mark.slow
def test_brief_prints_the_verdict_and_the_main_numbers_alone(run: Run, overconfident: str) -> None:
    done = run("audit", overconfident, "--brief", "--resamples", 99)
    assert done.exit_code == 0, done.stderr
    report = json.loads(run("audit", overconfident, "--resamples", 99, "--json", "-").stdout)
    assert done.stdout == render_brief(report) + "\n"
    assert len(done.stdout.splitlines()) <= 11
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Notes" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("gate", "code"), [("ece>0.001", 1), ("ece>0.9", 0), ("reject", 1)])
def test_a_gate_ends_the_command_alike_with_and_without_brief(
    run: Run, overconfident: str, gate: str, code: int
) -> None:
    for words in ((), ("--brief",)):
        done = run("audit", overconfident, "--resamples", 99, "--fail-on", gate, *words)
        assert done.exit_code == code
        assert f"gate {'failed' if code else 'passed'}" in done.stderr


@pytest.mark.slow
def test_brief_leaves_the_json_whole(run: Run, overconfident: str) -> None:
    words = ["audit", overconfident, "--resamples", 99, "--json", "-"]
    assert run(*words, "--brief").stdout == run(*words).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "FILE", "--interval", "none"),
        ("test", "FILE", "--resamples", 99, "--margin", 0.05),
        ("compare", "FILE", "OTHER", "--resamples", 99),
        ("fit", "FILE", "--method", "temperature", "--out", "OUT"),
        ("list",),
        ("measure", "FILE", "--lens", "clas"),
        ("audit", "FILE", "--resamples", 99),
    ],
    ids=lambda words: " ".join(map(str, words[:1])),
)
def test_on_a_terminal_no_line_is_wider_than_it(
    run: Run, overconfident: str, honest: str, monkeypatch: pytest.MonkeyPatch, tmp_path, words: tuple
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {"FILE": overconfident, "OTHER": honest, "OUT": "cal.json"}
    words = tuple(paths.get(word, word) for word in words)
    piped = run(*words)
    monkeypatch.setattr(output, "terminal_width", lambda stream=None: 80)
    done = run(*words)
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
    assert (done.stdout + done.stderr).split() == (piped.stdout + piped.stderr).split()  # the same words


def test_json_on_a_terminal_is_not_wrapped(run: Run, overconfident: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["test", overconfident, "--resamples", 99, "--json", "-"]
    piped = run(*words).stdout
    monkeypatch.setattr(output, "terminal_width", lambda stream=None: 40)
    assert run(*words).stdout == piped
