"""Does the mutation of the code run every test that it should, and call killed only what a test notices?"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests import mutate
from tests.mutate import Coverage, Mutant, Place, check_unchanged, name_of_test, print_summary, run_tests

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants run in forks"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # of Python 3.12, where libraries have threads
]


def mutant(line: int = 1, outcome: str = "") -> Mutant:
    code = "\n" * (line - 1) + "x = 1\n"
    return Mutant(Place("a.py", (line, 4), (line, 5)), "NumberReplacer", code, code.replace("1", "2"), outcome)


def test_a_test_whose_name_has_a_bar_is_found_by_its_whole_name() -> None:
    assert name_of_test("test_a.py::test_or[a|b]|run") == "test_a.py::test_or[a|b]"
    assert name_of_test("") == ""


def test_a_mutant_that_hangs_is_killed_and_listed_as_timed_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pytest, "main", lambda *_, **__: time.sleep(60))
    hanging = mutant()
    hanging.outcome = run_tests(["test_a.py::test_it"], seconds=0.1)
    print_summary("data", [hanging, mutant(outcome="killed"), mutant(outcome="survived")])
    printed = capsys.readouterr().out
    assert "timed out: a.py:1 (NumberReplacer, 0 tests)\n  - x = 1\n  + x = 2" in printed
    assert "data: 2 of 3 mutants killed, 66.7%" in printed
    assert printed.endswith("; 1 of them timed out\n")


def test_slow_tests_have_more_time_before_a_mutant_has_timed_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits = []
    monkeypatch.setattr(mutate, "run_tests", lambda tests, seconds: limits.append(seconds) or "survived")
    for seconds in (1.0, 60.0):
        mutate.run_mutant(tmp_path, mutant(), Coverage({"a.py": {1: {"t"}}}, {"t": seconds}))
    assert limits == [mutate.LEAST_SECONDS, 60 * mutate.TIMES_LONGER]


def test_every_test_of_every_mutant_runs_without_a_change_and_is_left_out_if_it_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = {line: {f"t{line}", f"u{line}"} for line in range(1, 31)}
    coverage = Coverage({"a.py": lines}, {f"t{line}": 1.0 for line in range(1, 31)})
    runs = []

    def run(tests: list[str], seconds: float | None, passed: Path) -> str:
        runs.append(tests)
        passed.write_text(json.dumps([test for test in tests if test != "t25"]), encoding="utf-8")
        return "killed"

    monkeypatch.setattr(mutate, "run_tests", run)
    check_unchanged(tmp_path, [mutant(line) for line in range(1, 31)], coverage)
    assert sorted(runs[0]) == sorted({test for tests in lines.values() for test in tests} | {"t25"})
    assert runs[0][:30] == sorted(f"u{line}" for line in range(1, 31))
    assert coverage.lines["a.py"][25] == {"u25"}
    assert coverage.lines["a.py"][24] == {"t24", "u24"}


@pytest.mark.slow
def test_a_mutant_that_renames_a_test_is_killed_only_by_a_test_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_a.py").write_text("def test_one(): pass\ndef test_two(): assert 0\n", encoding="utf-8")
    assert run_tests(["test_a.py::test_gone"], seconds=60) == "survived"
    run_tests(["test_a.py::test_one", "test_a.py::test_two"], seconds=60, passed=tmp_path / "passed.json")
    assert json.loads((tmp_path / "passed.json").read_text(encoding="utf-8")) == ["test_a.py::test_one"]
    (tmp_path / "test_a.py").write_text("import no_such_module\ndef test_one(): pass\n", encoding="utf-8")
    assert run_tests(["test_a.py::test_one"], seconds=60) == "killed"
