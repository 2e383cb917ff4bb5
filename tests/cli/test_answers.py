"""Does `trueodds answers` say what was answered, how much of it was wrong, and write it down?"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled
from tests.test_schemas import assert_valid
from trueodds.lenses.selective_risk import selective_risk

HOW = ["--confidence", "c", "--correct", "ok", "--percent", "--abstained", "skip"]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bootstrap resamples, in a fifth of the time: few tests compare the widths of intervals."""
    set_resamples(monkeypatch, 200)


def set_resamples(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(importlib.import_module("trueodds.cli.answers"), "CURVE_RESAMPLES", count)


@pytest.fixture
def exam(folder: Path) -> Path:
    """Of 250 asked 200 are answered, of 40 questions five times each: .9 is right in 80 of 100, .6 in 50 of 100."""
    rows: list[dict[str, Any]] = []
    for i in range(200):
        confidence = 90 if i < 100 else 60
        rows.append(
            {
                "q": i // 5,
                "c": confidence,
                "ok": "yes" if i % 100 < (80 if confidence == 90 else 50) else "no",
                "skip": 0,
            }
        )
    file = folder / "exam.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *[{"q": "–", "skip": 1}] * 50]), encoding="utf-8")
    return file


def test_the_numbers_by_hand(run: Run, exam: Path) -> None:
    """Half of the questions: 100 of .9 and 25 of .6: (20 + 12.5)/125 = .26. Of 80 % all: 70/200 = .35."""
    done = run("answers", exam, *HOW)
    assert done.exit_code == 0, done.output
    values = {line[:17].strip(): line[17:] for line in done.stdout.splitlines()}
    assert (values["queries"], values["abstained"], values["coverage"]) == ("250", "50", "80%")
    assert values["accuracy"].startswith("0.65 [")
    assert values["accuracy"].endswith("· 200 answers")
    assert values["overall accuracy"] == "0.52 of all queries"  # 130 of 250
    assert values["mean confidence"] == "0.75"
    assert values["risk at 50%"].startswith("0.26 [")
    assert values["risk at 50%"].endswith("· confidence ≥ 0.6 answers 80%, risk 0.35")
    assert values["risk at 80%"].startswith("0.35 [")
    assert values["risk at 80%"].endswith("· confidence ≥ 0.6")
    assert done.stdout.count("equal confidences in random order") == 1
    assert values["risk at 90%"] == "– · only 80% were answered"
    assert done.stdout.count("TN146") == 1
    # In each bin of 100 the confidence is .1 above what came: their root mean square is .1.
    assert "rmsce 0.1 [" in done.stdout
    # BAS: mean of c + wrong · log(1 − c) = .75 + (.2 log .1 + .5 log .4)/2
    assert f"bas {0.75 + (0.2 * np.log(0.1) + 0.5 * np.log(0.4)) / 2:.4f} [" in done.stdout


def test_json_is_one_object_of_the_same_numbers(run: Run, exam: Path) -> None:
    document = json.loads(run("answers", exam, *HOW, "--json", "-").stdout)
    assert_valid(document, "answers")
    assert (document["n_queries"], document["abstained"], document["n"], document["coverage"]) == (250, 50, 200, 0.8)
    assert [point["risk"] for point in document["selective_risk"]["at"]] == pytest.approx([0.26, 0.35, None, None])
    points = [point["operating_point"] for point in document["selective_risk"]["at"]]
    assert points == [{"threshold": 0.6, "coverage": 0.8, "risk": 0.35}] * 2 + [None] * 2
    assert document["threshold"] is None
    assert document["accuracy"]["value"] == pytest.approx(0.65)
    assert document["accuracy"]["low"] < 0.65 < document["accuracy"]["high"]
    preds = to.Predictions.from_confidence([0.9] * 100 + [0.6] * 100, [1] * 80 + [0] * 20 + [1] * 50 + [0] * 50)
    assert document["selective_risk"]["aurc"] == pytest.approx(float(selective_risk(preds, resamples=0)))
    assert [measure["estimator"] for measure in document["measures"]] == ["rmsce", "bas"]
    assert document["measures"][0]["settings"]["partition"] == "mass 100"
    assert [note["code"] for note in document["notes"]].count("TN146") == 1


def test_the_threshold_of_a_target_risk_is_printed_and_written(run: Run, exam: Path) -> None:
    """Of 100 answers at .9 are 20 wrong, and P(Bin(100, .35) ≤ 20) = .001. Of all 200 answers, .35 are wrong."""
    done = run("answers", exam, *HOW, "--max-risk", 0.35)
    values = {line[:17].strip(): line[17:] for line in done.stdout.splitlines()}
    answered = "confidence ≥ 0.9 answers 40%, observed risk 0.2"
    assert values["threshold"] == f"{answered} · risk ≤ 0.35 with 95% confidence"
    document = json.loads(run("answers", exam, *HOW, "--max-risk", 0.35, "--level", 0.9, "--json", "-").stdout)
    assert_valid(document, "answers")
    known = {"threshold": 0.9, "coverage": 0.4, "risk": 0.2, "answered": 100, "max_risk": 0.35, "level": 0.9}
    assert {key: document["threshold"][key] for key in known} == pytest.approx(known)
    document = json.loads(run("answers", exam, *HOW, "--max-risk", 0.2, "--json", "-").stdout)
    assert_valid(document, "answers")
    assert document["threshold"]["threshold"] is None
    assert "no threshold has a risk ≤ 0.35" in run("answers", exam, *HOW, "--max-risk", 0.35, "--question", "q").stdout


@pytest.mark.slow
def test_rows_of_one_question_widen_every_interval(run: Run, exam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows of a question are right or wrong together: intervals are √5 = 2.24 times as wide."""
    set_resamples(monkeypatch, 2000)
    naive, wide = (
        json.loads(run("answers", exam, *HOW, *more, "--json", "-").stdout) for more in ([], ["--question", "q"])
    )

    def widths(document: dict[str, Any]) -> list[float]:
        limits = [document["accuracy"], document["selective_risk"]["interval"], document["measures"][1]["interval"]]
        return [interval["high"] - interval["low"] for interval in limits]

    # Percentiles of 2,000 resamples of 40 clusters: widths have a relative sd of a few percent.
    assert np.array(widths(wide)) / np.array(widths(naive)) == pytest.approx(np.full(3, np.sqrt(5)), rel=0.25)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".npz"])
def test_the_answers_are_written_as_a_file_that_every_command_reads(run: Run, exam: Path, suffix: str) -> None:
    out = exam.parent / f"preds{suffix}"
    done = run("answers", exam, *HOW, "--question", "q", "--out", out)
    assert str(out) in done.stdout
    result = run("measure", out, "--confidence", "confidence", "--correct", "correct", "--cluster", "question")
    assert result.exit_code == 0, result.output
    direct = run("measure", exam, *HOW, "--question", "q")
    assert result.stdout.splitlines()[0] == direct.stdout.splitlines()[0]


def test_options_are_written_as_probabilities_and_labels(run: Run, folder: Path) -> None:
    file, out = folder / "a.jsonl", folder / "preds.csv"
    file.write_text('{"z": [-1, -2, -3], "y": 1}\n{"z": [-3, -0.5, -2], "y": 1}\n', encoding="utf-8")
    assert run("answers", file, "--logprobs", "z", "--answer", "y", "--out", out).exit_code == 0
    assert out.read_text(encoding="utf-8").startswith("label,p_0,p_1,p_2\n1,0.66524")
    assert run("measure", out, "--estimator", "brier").exit_code == 0


@pytest.mark.parametrize("suffix", [".svg", ".csv", ".json"])
def test_the_curve_is_a_picture_or_its_numbers(run: Run, exam: Path, suffix: str) -> None:
    curve = exam.parent / f"risk{suffix}"
    done = run("answers", exam, *HOW, "--curve", curve)
    assert done.exit_code == 0, done.output
    text = curve.read_text(encoding="utf-8")
    if suffix == ".svg":
        assert "<svg" in text
        assert "If only the most confident predictions are kept" in text
    elif suffix == ".csv":
        head, *rows = text.splitlines()
        assert head == "view,coverage,threshold,risk,low,high"
        assert rows[-1].startswith("confidence,0.8,0.6,0.35,")
    else:
        assert json.loads(text)["panels"]["n_queries"] == [250]


def test_bas_of_a_certain_error_is_finite_with_a_floor_only(run: Run, folder: Path) -> None:
    file = folder / "a.jsonl"
    file.write_text('{"c": 100, "ok": "no"}\n{"c": 50, "ok": "yes"}\n' * 20, encoding="utf-8")
    words = ["answers", file, "--confidence", "c", "--correct", "ok", "--percent"]
    assert "bas -inf" in run(*words).stdout
    assert f"bas {0.75 + np.log(0.01) / 2:.4f}" in run(*words, "--min-prob", 0.01).stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("exam.jsonl", "TO601"),
        ("exam.jsonl --correct ok", "TO601"),
        ("exam.jsonl --confidence c", "TO601"),
        ("exam.jsonl --confidence c --correct ok --curve risk.html", "TO606"),
        ("exam.jsonl --confidence c --correct ok --out exam.jsonl", "TO603"),
        ("exam.jsonl --confidence c --correct ok --out a.csv --curve a.csv", "TO603"),
        ("exam.jsonl --confidence c --correct ok --abstained skip", "TO317"),
        ("exam.jsonl --confidence c --correct ok --abstained skip --percent --out a.doc", "TO314"),
        ("exam.jsonl --confidence c --correct ok --label ok", "TO601"),
    ],
)
def test_what_cannot_be_answered_is_a_coded_error(
    run: Run, exam: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: str
) -> None:
    monkeypatch.chdir(exam.parent)
    before = exam.read_text(encoding="utf-8")
    done = run("answers", *words.split())
    assert done.exit_code == 2
    assert labelled(done.stderr)["code"] == code
    assert exam.read_text(encoding="utf-8") == before


def test_answers_to_a_repeated_question_are_not_called_questions(run: Run, exam: Path) -> None:
    """250 answers were asked for: by 40 questions five times each, and fifty times by one that never got any."""
    done = run("answers", exam, *HOW, "--question", "q")
    assert "queries          250 rows of 41 questions\n" in done.stdout
    assert "50 of 250 answers to 41 questions are missing (coverage 80%)" in done.stdout
    assert "questions got no answer" not in done.stdout
    documents = [
        json.loads(run("answers", exam, *HOW, *more, "--json", "-").stdout) for more in ([], ["--question", "q"])
    ]
    assert [document["questions"] for document in documents] == [None, 41]
    assert_valid(documents[1], "answers")


def test_an_error_of_one_bin_says_so(run: Run, folder: Path) -> None:
    """120 answers of different confidence make one bin of 100 rows and more: mean confidence beside accuracy."""
    file = folder / "short.jsonl"
    file.write_text(
        "".join(json.dumps({"c": i / 120, "ok": int(i % 3 > 0)}) + "\n" for i in range(120)), encoding="utf-8"
    )
    done = run("answers", file, "--confidence", "c", "--correct", "ok")
    assert "[TN109] All 120 rows share one bin" in done.output


def test_questions_are_written_as_the_records_call_them(run: Run, folder: Path) -> None:
    file = folder / "a.jsonl"
    file.write_text(
        "".join(f'{{"q": "q{i // 2}", "c": 0.{i + 2}, "ok": {i % 2}}}\n' for i in range(6)), encoding="utf-8"
    )
    out = folder / "b.csv"
    assert run("answers", file, "--confidence", "c", "--correct", "ok", "--question", "q", "--out", out).exit_code == 0
    assert out.read_text(encoding="utf-8").splitlines() == [
        "confidence,correct,question",
        *(f"0.{i + 2},{i % 2},q{i // 2}" for i in range(6)),
    ]


def test_the_accuracy_of_all_questions_counts_abstentions_as_not_correct(run: Run, exam: Path, folder: Path) -> None:
    document = json.loads(run("answers", exam, *HOW, "--json", "-").stdout)
    assert (document["accuracy"]["value"], document["overall_accuracy"]) == (pytest.approx(0.65), pytest.approx(0.52))
    assert run("answers", exam, *HOW, "--fail-on", "overall_accuracy<0.55").exit_code == 1
    file = folder / "a.jsonl"
    file.write_text(
        '{"c": 0.9, "ok": 1, "skip": 0}\n{"c": null, "ok": 1, "skip": 0}\n{"c": 0.6, "ok": 0, "skip": 0}\n',
        encoding="utf-8",
    )
    how = ("--confidence", "c", "--correct", "ok", "--abstained", "skip,c")
    document = json.loads(run("answers", file, *how, "--json", "-").stdout)
    assert document["without_confidence"] == 1
    assert document["overall_accuracy"] is None  # the answer without a confidence may be correct


def test_each_coverage_is_reported_once(run: Run, folder: Path) -> None:
    """All were answered, so that the last coverage is that of the accuracy too: 4 of 10 are wrong."""
    file = folder / "a.jsonl"
    file.write_text("".join(f'{{"c": 0.{i}, "ok": {int(i > 3)}}}\n' for i in range(10)), encoding="utf-8")
    document = json.loads(run("answers", file, "--confidence", "c", "--correct", "ok", "--json", "-").stdout)
    assert [point["coverage"] for point in document["selective_risk"]["at"]] == [0.5, 0.8, 0.9, 1.0]
    last = document["selective_risk"]["at"][-1]
    assert last["risk"] == pytest.approx(0.4)
    assert document["accuracy"] == pytest.approx({"value": 0.6, "low": 1 - last["high"], "high": 1 - last["low"]})


@pytest.mark.parametrize("more", [[], ["--question", "q"]])
def test_the_curve_has_the_interval_of_the_text(run: Run, exam: Path, more: list[str]) -> None:
    curve, report = exam.parent / "risk.json", exam.parent / "told.json"
    run("answers", exam, *HOW, *more, "--curve", curve, "--json", report, "--seed", 3)
    panels, document = (json.loads(path.read_text(encoding="utf-8")) for path in (curve, report))
    interval = document["selective_risk"]["interval"]
    assert [panels["panels"]["aurc_low"], panels["panels"]["aurc_high"]] == [[interval["low"]], [interval["high"]]]


def test_bas_is_spelled_out_and_its_noise_floor_is_no_error(run: Run, folder: Path) -> None:
    """Were .9 and .6 true, they would earn the mean of c + (1 − c) log(1 − c): (.9 + .1 log .1 + .6 + .4 log .4)/2."""
    file = folder / "a.jsonl"
    file.write_text('{"c": 0.9, "ok": 1}\n{"c": 0.6, "ok": 0}\n' * 20, encoding="utf-8")
    text = " ".join(run("answers", file, "--confidence", "c", "--correct", "ok").stdout.split())
    earned = (0.9 + 0.1 * np.log(0.1) + 0.6 + 0.4 * np.log(0.4)) / 2
    assert "Behavioral Alignment Score" in text
    assert f"If these confidences were calibrated, the expected score would be {earned:.4f}." in text


def test_infinite_bas_leads_to_the_floor(run: Run, folder: Path) -> None:
    file = folder / "a.jsonl"
    file.write_text('{"c": 1, "ok": 0}\n{"c": 0.5, "ok": 1}\n', encoding="utf-8")
    words = ["answers", file, "--confidence", "c", "--correct", "ok"]
    assert "--min-prob 0.01 assumes an error probability 1 − c of at least 0.01" in run(*words).stdout
    assert "--min-prob 0.01 assumes" not in run(*words, "--min-prob", "0.01").stdout


def test_groups_are_written_with_the_answers(run: Run, folder: Path) -> None:
    file, out = folder / "a.jsonl", folder / "preds.csv"
    rows = [{"c": 0.6 + i % 4 / 10, "ok": i % 3 > 0, "doc": {"subject": "ab"[i % 2]}, "skip": i < 5} for i in range(80)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how = ("--confidence", "c", "--correct", "ok", "--abstained", "skip", "--group", "doc.subject")
    assert run("answers", file, *how, "--out", out).exit_code == 0
    assert out.read_text(encoding="utf-8").splitlines()[:2] == ["confidence,correct,doc.subject", "0.7,1,b"]
    columns = ("--confidence", "confidence", "--correct", "correct", "--group", "doc.subject")
    written, direct = run("groups", out, *columns), run("groups", file, *how)
    assert written.exit_code == 0, written.output
    assert written.stdout.splitlines()[0] == direct.stdout.splitlines()[0]
    result = run("answers", file, *how)
    assert result.exit_code == 2
    assert "--group needs --out." in result.output


def test_a_group_called_like_another_column_keeps_both(run: Run, folder: Path) -> None:
    file, out = folder / "a.jsonl", folder / "preds.csv"
    file.write_text('{"c": 0.5, "ok": 1, "correct": "x"}\n{"c": 0.7, "ok": 0, "correct": "y"}\n', encoding="utf-8")
    done = run("answers", file, "--confidence", "c", "--correct", "ok", "--group", "correct", "--out", out)
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8").splitlines() == ["confidence,correct,group_correct", "0.5,1,x", "0.7,0,y"]


def test_refusals_and_answers_without_a_confidence_are_counted_apart(run: Run, folder: Path) -> None:
    file = folder / "a.jsonl"
    rows = [{"c": 90 if i < 60 else None, "ok": i % 2, "refused": i >= 80} for i in range(100)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["answers", file, "--confidence", "c", "--correct", "ok", "--percent", "--abstained", "refused,c"]
    done = run(*words)
    values = {line[:17].strip(): line[17:] for line in done.stdout.splitlines()}
    assert (values["abstained"], values["no confidence"], values["coverage"]) == ("20", "20", "60%")
    assert "20 of 100 answers have no confidence (50% of them are correct)" in done.stdout
    document = json.loads(run(*words, "--json", "-").stdout)
    assert_valid(document, "answers")
    assert (document["abstained"], document["without_confidence"], document["coverage"]) == (20, 20, 0.6)


def test_doubtful_percentages_are_counted_above_the_numbers(run: Run, folder: Path) -> None:
    file = folder / "a.jsonl"
    file.write_text(
        "".join(json.dumps({"c": [90, 0.75][i % 4 == 3], "ok": i % 2}) + "\n" for i in range(40)), encoding="utf-8"
    )
    done = run("answers", file, "--confidence", "c", "--correct", "ok", "--percent")
    assert done.stdout.startswith("[TN148] 10 of 40 confidences are above 0 and at most 1")
    assert done.stdout.count("TN148") == 1


def test_several_fields_identify_a_question(run: Run, folder: Path) -> None:
    for name in "ab":
        lines = (json.dumps({"q": i, "c": 0.5 + i / 50, "ok": i % 2}) + "\n" for i in range(20))
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    words = ["answers", folder / "*.jsonl", "--confidence", "c", "--correct", "ok", "--question"]
    noted = run(*words, "q")
    assert "queries          40 rows of 20 questions\n" in noted.stdout
    assert "[TN181] 20 of 20 question ids occur in several files" in noted.stdout
    assert "use --question file,q." in noted.stdout
    assert "queries          40\n" in run(*words, "file,q").stdout


@pytest.mark.slow
def test_wrong_answers_at_full_confidence_are_called_so(run: Run, folder: Path) -> None:
    """The advice of the notes can be followed with clusters too."""
    file = folder / "a.jsonl"
    rows = [{"q": i // 2, "c": 1.0 if i % 5 == 0 else 0.8, "ok": int(i % 3 > 0)} for i in range(120)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = [file, "--confidence", "c", "--correct", "ok", "--question", "q", "--resamples", 99]
    text = " ".join(run("audit", *words).stdout.split())
    assert "8 answers were wrong at confidence 1, or correct at confidence 0." in text
    assert "observed outcomes" not in text.split("Scores")[0]
    assert "The test cox with --min-prob estimates them with intervals" in text
    advised = run("test", *words, "--test", "cox", "--min-prob", "1e-6", "--set", "null=redraw")
    assert advised.exit_code == 0, advised.output
