"""trueodds audit: text, page, JSON, gates and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

RESAMPLES = ("--resamples", 99)


def test_an_audit_prints_its_sentence_and_exits_with_0(run: Run, overconfident: str) -> None:
    done = run("audit", overconfident, *RESAMPLES)
    assert done.exit_code == 0
    assert done.stdout.startswith("Overconfident")
    assert done.stderr == ""


def test_json_on_stdout_is_one_object_and_nothing_else(run: Run, overconfident: str) -> None:
    done = run("audit", overconfident, *RESAMPLES, "--json", "-", "--fail-on", "ece>0.9")
    document = json.loads(done.stdout)
    assert document["schema"] == "trueodds.audit/1"
    assert "gate passed: ece@confidence = 0." in done.stderr
    assert done.exit_code == 0


def test_text_json_and_page_tell_the_same(run: Run, overconfident: str, folder: Path) -> None:
    done = run(
        "audit", overconfident, *RESAMPLES, "--json", folder / "a.json", "--html", folder / "a.html", "--group", "site"
    )
    assert done.exit_code == 0
    document = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    html = (folder / "a.html").read_text(encoding="utf-8").replace("&#39;", "'").replace("\u00a0", " ")
    assert document["verdict"]["sentence"] in html
    assert document["verdict"]["sentence"].split(".")[0] in " ".join(done.stdout.split())
    for group in document["groups"]:
        assert group["label"] in html
        assert group["label"] in done.stdout
    assert len(html.encode()) < 1_000_000


@pytest.mark.slow
def test_the_page_has_the_title_the_author_and_the_date(run: Run, overconfident: str, folder: Path) -> None:
    cover = ("--title", "Validation", "--author", "A. Author", "--date", "2026-03-01")
    assert run("audit", overconfident, *RESAMPLES, "--html", folder / "a.html", *cover).exit_code == 0
    html = (folder / "a.html").read_text(encoding="utf-8")
    assert [text in html for text in ("<title>Validation</title>", "<dd>A. Author</dd>", "2026-03-01")] == [True] * 3


def test_a_title_needs_a_page_and_a_date_must_be_one(run: Run, overconfident: str, folder: Path) -> None:
    done = run("audit", overconfident, "--author", "A. Author")
    assert (done.exit_code, "TO603" in done.stderr, "--author" in done.stderr) == (2, True, True)
    done = run("audit", overconfident, "--html", folder / "a.html", "--date", "March")
    assert (done.exit_code, "TO203" in done.stderr) == (2, True)
    assert not (folder / "a.html").exists()


def test_the_gate_on_rejection(run: Run, overconfident: str, honest: str) -> None:
    assert run("audit", overconfident, *RESAMPLES, "--fail-on", "reject").exit_code == 1
    assert run("audit", honest, *RESAMPLES, "--fail-on", "reject").exit_code == 0


def test_one_failed_gate_of_several_is_a_failure_and_the_answer_is_still_written(
    run: Run, overconfident: str, folder: Path
) -> None:
    out = folder / "a.json"
    done = run("audit", overconfident, *RESAMPLES, "--fail-on", "ece>0.9", "--fail-on", "ece.high>0.01", "--json", out)
    assert done.exit_code == 1
    assert re.search(r"gate passed: ece@confidence = 0\.\d+, not > 0\.9", done.stderr)
    assert re.search(r"gate failed: ece\.high@confidence = 0\.\d+ > 0\.01", done.stderr)
    assert json.loads(out.read_text(encoding="utf-8"))["schema"] == "trueodds.audit/1"


def test_a_gate_that_cannot_be_evaluated_is_no_pass(run: Run, honest: str) -> None:
    done = run("audit", honest, *RESAMPLES, "--fail-on", "ece>0.9", "--fail-on", "ece@top-9>0.9")
    assert done.exit_code == 2
    assert done.stderr.startswith("error TO204\n")


def test_a_gate_that_cannot_be_read_stops_before_the_work(run: Run) -> None:
    done = run("audit", "nowhere.csv", "--fail-on", "ece=0.1")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO610")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_and_another_does_not(run: Run, honest: str) -> None:
    first, second, other = (
        run("audit", honest, *RESAMPLES, "--json", "-", "--seed", seed).stdout for seed in (3, 3, 4)
    )
    assert first == second != other


@pytest.mark.slow
def test_a_tally_file_is_audited_and_several_are_added_up(
    run: Run, overconfident: str, honest: str, folder: Path
) -> None:
    part, other = str(folder / "a.tally.json"), str(folder / "b.tally.json")
    assert run("tally", overconfident, "--out", part).exit_code == 0
    assert run("tally", honest, "--out", other).exit_code == 0
    once, twice = (
        json.loads(run("audit", *files, *RESAMPLES, "--json", "-").stdout) for files in ([part], [part, other])
    )
    assert (once["data"]["n"], twice["data"]["n"]) == (400, 800)
    assert once["recalibration"] is None


def test_columns_mean_nothing_for_a_tally(run: Run, overconfident: str, folder: Path) -> None:
    part = str(folder / "a.tally.json")
    run("tally", overconfident, "--out", part)
    done = run("audit", part, "--label", "y")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO603")
    done = run("audit", part, overconfident)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO603")


def test_the_page_does_not_go_to_stdout(run: Run, overconfident: str) -> None:
    assert run("audit", overconfident, "--html", "-").stderr.startswith("error TO603")
