"""Does every command read what a language model answered, in the shapes that evaluations write?"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled

Rows = list[dict[str, Any]]
N = 120


def stated(rng: np.random.Generator) -> tuple[int, bool]:
    confidence = int(rng.choice([60, 70, 80, 90, 100]))
    return confidence, bool(rng.random() < confidence / 130)


def harness(*, quoted: bool) -> Rows:
    """lm-evaluation-harness with --log_samples: pairs of log-probability and whether it was the greedy text."""
    rng, rows = np.random.default_rng(0), []
    for i in range(N):
        pairs: list[list[Any]] = [[round(float(logprob), 4), False] for logprob in rng.normal(-12, 2, 4)]
        pairs = [[str(value), str(greedy)] for value, greedy in pairs] if quoted else pairs
        rows.append({
            "doc_id": i, "doc": {"question": "?", "choices": ["a", "b", "c", "d"], "subject": ["law", "art"][i % 2]},
            "target": str(i % 4) if quoted else i % 4, "arguments": [["?", " a"]] * 4,
            "resps": [[pair] for pair in pairs], "filtered_resps": pairs, "acc": float(i % 3 == 0),
        })  # fmt: skip
    return rows


def exam() -> dict[str, Any]:
    """Humanity's Last Exam, judged: one JSON object, the answers under the names of the questions."""
    rng, records = np.random.default_rng(1), {}
    for i in range(N):
        confidence, right = stated(rng)
        grading = {
            "correct_answer": "x",
            "model_answer": "y",
            "correct": "yes" if right else "no",
            "confidence": confidence,
        }
        records[f"66{i:04d}"] = {"model": "m", "response": "…", "judge_response": grading}
    return records


def evals() -> Rows:
    """Records in the manner of OpenAI's evals and simple-evals: events with data, a confidence in percent as text."""
    rng, rows = np.random.default_rng(2), []
    for i in range(N):
        confidence, right = stated(rng)
        data = {"correct": right, "expected": "x", "sampled": "Answer: x", "confidence": f"{confidence}%"}
        rows.append({"run_id": "r", "event_id": i, "sample_id": f"s.{i}", "type": "match", "data": data})
    return rows


def helm() -> Rows:
    """Statistics of instances in the manner of HELM: several trials of an instance, a stated confidence 0 to 100."""
    rng, rows = np.random.default_rng(3), []
    for i in range(N):
        confidence, right = stated(rng)
        stats = {"quasi_exact_match": float(right), "verbalized_confidence": confidence}
        rows.append({"instance_id": f"id{i // 3}", "train_trial_index": i % 3, "stats": stats})
    return rows


def sampled() -> Rows:
    rng = np.random.default_rng(4)
    return [
        {"id": i, "samples": rng.choice(["7", "8", "9"], 5, p=[0.6, 0.3, 0.1]).tolist(), "gold": 7} for i in range(N)
    ]


def one_by_one() -> Rows:
    return [
        {"q": row["id"], "text": text, "ok": text == "7", "none": False} for row in sampled() for text in row["samples"]
    ]


SHAPES: dict[str, tuple[str, Any, str]] = {
    "harness": ("samples_exam.jsonl", harness(quoted=False), "--logprobs filtered_resps --answer target"),
    "quoted": ("samples_new.jsonl", harness(quoted=True), "--logprobs resps --answer target"),
    "exam": (
        "judged.json",
        exam(),
        "--confidence judge_response.confidence --correct judge_response.correct --percent",
    ),
    "evals": ("evals.jsonl", evals(), "--confidence data.confidence --correct data.correct --percent"),
    "helm": (
        "helm.json",
        helm(),
        "--confidence stats.verbalized_confidence --correct stats.quasi_exact_match --percent --question instance_id",
    ),
    "sampled": ("sampled.jsonl", sampled(), "--samples samples --answer gold"),
    "one by one": ("each.jsonl", one_by_one(), "--samples text --correct ok --question q --abstained none"),
}
Shape = Callable[[str], tuple[Path, list[str]]]


@pytest.fixture
def shape(folder: Path) -> Shape:
    def written(name: str) -> tuple[Path, list[str]]:
        file, content, options = SHAPES[name]
        path = folder / file
        lines = "".join(json.dumps(row) + "\n" for row in content)
        path.write_text(json.dumps(content) if file.endswith(".json") else lines, encoding="utf-8")
        return path, options.split()

    return written


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_read_to_an_audit(run: Run, shape: Shape, name: str) -> None:
    path, options = shape(name)
    done = run("audit", path, *options, "--resamples", 99, "--json", "-")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["data"]["n"] == N
    assert ("TN204" in done.stdout) == (name == "helm")  # whose instances have three rows: a test of clusters
    assert any(measure["estimator"] == "ece" and measure["lens"] == "confidence" for measure in document["measures"])


def test_old_and_new_lines_of_the_harness_say_the_same(run: Run, shape: Shape) -> None:
    one, two = (run("measure", *flat(shape(name)), "--estimator", "brier").stdout for name in ("harness", "quoted"))
    assert two.startswith(one)
    assert one.startswith("brier 0.")
    # New lines have texts for positions.
    assert re.fullmatch(r" *\[TN170\] .* such as '0'; .*\n", two.removeprefix(one))


def flat(file_options: tuple[Path, list[str]]) -> list[Any]:
    return [file_options[0], *file_options[1]]


@pytest.mark.parametrize(
    "command",
    [
        "audit --resamples 99 --group doc.subject",
        "measure --lens classwise",
        "measure --mode tally",
        "test --resamples 99",
        "power --set simulations=50 --resamples 99",
        "fit --method temperature --out {folder}/cal.json",
        "draw --out {folder}/d.csv",
        "tally --group doc.subject --out {folder}/t.tally.json",
    ],
)
def test_every_command_reads_records(run: Run, shape: Shape, folder: Path, command: str) -> None:
    path, options = shape("harness")
    name, *words = command.format(folder=folder).split()
    done = run(name, path, *options, *words)
    assert done.exit_code == 0, done.output
    assert "120" in done.stdout


def test_two_files_of_records_are_compared(run: Run, shape: Shape, folder: Path) -> None:
    path, options = shape("exam")
    other = folder / "other.json"
    other.write_text(
        path.read_text(encoding="utf-8").replace('"confidence": 100', '"confidence": 60'), encoding="utf-8"
    )
    done = run("compare", path, other, *options, "--estimator", "brier")
    assert done.exit_code == 0, done.output
    assert "judged" in done.stdout


def test_plain_columns_are_read_as_before_and_in_batches(run: Run, folder: Path) -> None:
    file = folder / "plain.jsonl"
    file.write_text(
        "".join(f'{{"c": {0.5 + i % 5 / 10}, "z": {i % 2}, "w": 1.5}}\n' for i in range(60)), encoding="utf-8"
    )
    done = run("measure", file, "--confidence", "c", "--correct", "z", "--weight", "w")
    assert done.exit_code == 0, done.output
    source = to.read(str(file), confidence="c", correct="z", weight="w")
    assert done.stdout.startswith(repr(to.measure(source, "ece")))


def test_yes_and_no_and_fields_inside_others_need_no_further_option(run: Run, folder: Path) -> None:
    file = folder / "words.jsonl"
    file.write_text(
        "".join(json.dumps({"a": {"c": 0.8}, "c": 0.8, "ok": ["yes", "no"][i % 2]}) + "\n" for i in range(40)),
        encoding="utf-8",
    )
    for confidence in ("a.c", "c"):
        done = run("measure", file, "--confidence", confidence, "--correct", "ok", "--estimator", "brier")
        assert done.stdout.startswith("brier 0.34"), done.output  # (.04 + .64)/2


def test_percent_question_and_abstained_are_for_tables_too(run: Run, folder: Path) -> None:
    file, options = folder / "a.csv", ["--confidence", "c", "--correct", "ok"]
    rows = [f"{i % 20},{60 + 10 * (i % 4)},{int(i % 20 < 12)},no" for i in range(200)] + ["99,,,yes"] * 50
    file.write_text("\n".join(["q,c,ok,skip", *rows]) + "\n", encoding="utf-8")
    parquet = folder / "a.parquet"
    from pyarrow import csv
    from pyarrow import parquet as pq

    pq.write_table(csv.read_csv(file), parquet)
    how = [*options, "--percent", "--abstained", "skip"]
    alone, clustered, other = (
        run("measure", path, *how, *more, "--estimator", "brier", "--json", "-")
        for path, more in ((file, []), (file, ["--question", "q"]), (parquet, ["--question", "q"]))
    )
    widths = [json.loads(result.stdout)["interval"] for result in (alone, clustered)]
    naive, wide = (interval["high"] - interval["low"] for interval in widths)
    assert wide > 1.8 * naive  # ten rows of a question are right or wrong together
    assert clustered.stdout == other.stdout
    assert json.loads(alone.stdout)["n"] == 200


@pytest.mark.parametrize("command", ["audit --resamples 99", "measure", "fit --method platt --out {folder}/c.json"])
def test_the_coverage_is_reported_once(run: Run, folder: Path, command: str) -> None:
    file = folder / "a.jsonl"
    rows = [{"c": 60 + i % 30, "ok": i % 3 > 0, "s": "ab"[i % 2], "skip": i % 5 == 0} for i in range(150)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    name, *words = command.format(folder=folder).split()
    groups = ["--group", "s"] if name == "audit" else []
    done = run(name, file, "--confidence", "c", "--correct", "ok", "--percent", "--abstained", "skip", *groups, *words)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("TN146") == 1
    assert "30 of 150 questions have no answer (coverage 80%)" in " ".join(done.stdout.split())


FINE = {"c": 0.7, "ok": "yes", "skip": False, "logprobs": [-1, -2], "label": 0, "s": ["a", "a"]}
STATED = ["--confidence", "c", "--correct", "ok"]


@pytest.mark.parametrize(
    ("row", "options", "code", "message"),
    [
        (FINE | {"logprobs": [-1]}, ["--logprobs", "logprobs"], "TO315", "row 1 (line 2)"),
        (FINE | {"logprobs": [-1, 0.5]}, ["--logprobs", "logprobs"], "TO316", "row 1 (line 2)"),
        (FINE | {"c": 70}, STATED, "TO317", "row 1 (line 2)"),
        (FINE | {"c": 170}, [*STATED, "--percent"], "TO317", "row 1 (line 2)"),
        (FINE | {"c": "70%"}, STATED, "TO307", "Pass --percent, which reads"),
        (FINE | {"c": None}, STATED, "TO308", "pass --abstained c"),
        (FINE | {"logprobs": [2.5, -1]}, ["--logprobs", "logprobs"], "TO316", "by --logits."),
        ({"c": 0.7}, STATED, "TO304", "row 1 (line 2)"),
        (FINE | {"ok": None}, STATED, "TO308", "row 1 (line 2)"),
        (FINE | {"ok": "perhaps"}, STATED, "TO116", "row 1 (line 2)"),
        (FINE | {"skip": "perhaps"}, [*STATED, "--abstained", "skip"], "TO116", "row 1 (line 2)"),
        (FINE | {"label": 2}, ["--logprobs", "logprobs"], "TO318", "row 1 (line 2)"),
        (FINE | {"label": "b"}, ["--logprobs", "logprobs"], "TO318", "--choices F"),
        (FINE | {"s": ["a"]}, ["--samples", "s"], "TO315", "row 1 (line 2)"),
    ],
)
def test_a_bad_record_is_reported_with_its_row(
    run: Run, folder: Path, row: dict[str, Any], options: list[str], code: str, message: str
) -> None:
    file = folder / "bad.jsonl"
    file.write_text(json.dumps(FINE) + "\n" + json.dumps(row) + "\n", encoding="utf-8")
    done = run("measure", file, *options)
    assert done.exit_code == 2
    error = labelled(done.stderr)
    assert error["code"] == code
    assert message in done.stderr
    assert "=" not in error["fix"]


def test_where_nothing_was_answered_nothing_is_measured(run: Run, folder: Path) -> None:
    file = folder / "none.jsonl"
    file.write_text('{"skip": true}\n' * 3, encoding="utf-8")
    error = labelled(run("audit", file, *STATED, "--abstained", "skip").stderr)
    assert (error["code"], error["got"]) == ("TO319", f"3 rows of {file}")


def test_questions_of_several_sizes_keep_the_confidence_and_other_lenses_refuse(run: Run, folder: Path) -> None:
    file = folder / "ragged.jsonl"
    rows = [FINE, FINE | {"logprobs": [-1, -2, -3]}] * 10
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "TN145" in run("measure", file, "--logprobs", "logprobs").stdout
    assert labelled(run("measure", file, "--logprobs", "logprobs", "--lens", "classwise").stderr)["code"] == "TO204"


@pytest.mark.parametrize(
    ("words", "code", "fix"),
    [
        ("--percent", "TO601", "Add --confidence F."),
        ("--logprobs a --percent", "TO601", "Leave --percent out."),
        ("--logprobs a --samples b", "TO603", "Leave --samples out."),
        ("--logprobs a --confidence b --correct c", "TO603", "Leave --confidence out."),
        ("--logprobs a --correct c", "TO603", "--answer"),
        ("--samples a --correct c --answer d", "TO603", "Omit one"),
        ("--confidence a", "TO601", "--correct"),
        ("--correct a", "TO601", "--confidence"),
        ("--confidence a --correct b --answer c", "TO601", "Leave --answer out."),
        ("--samples a --choices c", "TO601", "Leave --choices out."),
        ("--question q", "TO601", "Add --logprobs F."),
        ("--abstained q", "TO601", "Add --logprobs F."),
        ("--logprobs a --label b", "TO603", "--answer"),
        ("--logprobs a --cluster b", "TO603", "--question"),
        ("--logprobs a --probs b", "TO603", "Leave --probs out."),
        ("--logprobs a --classes b", "TO603", "Leave --classes out."),
        ("--samples a --weight b", "TO603", "equal weights"),
        ("--confidence a --correct b --percent --sum-tolerance 0", "TO603", "Leave --sum-tolerance out."),
    ],
)  # fmt: skip
def test_options_that_exclude_each_other_or_are_read_by_nobody_are_refused(
    run: Run, words: str, code: str, fix: str
) -> None:
    for command in ("audit", "measure"):
        error = labelled(run(command, "x.jsonl", *words.split()).stderr)
        assert error["code"] == code
        assert fix in error["fix"]


def test_a_tally_has_no_records(run: Run, shape: Shape, folder: Path) -> None:
    path, options = shape("harness")
    tally = folder / "t.tally.json"
    assert run("tally", path, *options, "--out", tally).exit_code == 0
    assert labelled(run("measure", tally, *options).stderr)["code"] == "TO603"


@pytest.mark.slow
def test_the_commands_of_the_page_run_on_the_files_that_it_writes(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of docs/answers.md, those of its table too, on what its blocks of Python write."""
    monkeypatch.chdir(folder)
    page = (Path(__file__).parents[2] / "docs" / "answers.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        if block.startswith(">>>"):  # what is printed is for tests/test_docs.py; here only names matter
            chosen = [line for line in lines if line.startswith((">>> ", "... "))]
            is_exam = "judged" in block and "range(1000)" in block
            block = (
                "\n".join(line[4:] for line in chosen[: next(i for i, x in enumerate(chosen) if "fields" in x)])
                if is_exam
                else ""
            )
        exec(compile(block, "answers.md", "exec"), names)
    commands = re.findall(r"^\$ trueodds (.*)$", page, re.MULTILINE) + re.findall(r"\| `trueodds (.*?)` \|", page)
    assert len(commands) >= 18
    for command in dict.fromkeys(commands):
        done = run(*shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"


def choosing(folder: Path, *, alike: bool = True) -> str:
    rng, file = np.random.default_rng(5), folder / "q.jsonl"
    rows = []
    for i in range(60):
        names = ["A", "B", "C"] if alike or i else ["x", "y", "z"]
        rows.append({"z": rng.normal(-5, 1, 3).round(3).tolist(), "y": names[i % 3], "doc": {"names": names}})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


@pytest.mark.slow
def test_names_that_every_question_lists_are_the_classes(run: Run, folder: Path) -> None:
    words = ["--logprobs", "z", "--answer", "y", "--choices", "doc.names"]
    file, out = choosing(folder), folder / "p.csv"
    assert "3: A, B, C" in run("audit", file, *words, "--resamples", 99).stdout
    assert run("measure", file, *words, "--lens", "class:B").exit_code == 0
    assert run("answers", file, *words, "--out", out).exit_code == 0
    head, first, *_ = out.read_text(encoding="utf-8").splitlines()
    assert (head, first[0]) == ("label,p_A,p_B,p_C", "A")
    result = run("measure", out, "--estimator", "brier")
    assert result.stdout == run("measure", file, *words, "--estimator", "brier").stdout
    other = choosing(folder, alike=False)
    assert "3: 0, 1, 2" in run("audit", other, *words, "--resamples", 99).stdout


def test_a_diagram_of_answers_knows_how_many_were_not_given(run: Run, folder: Path) -> None:
    """Of 40 asked 30 were answered, so the curve ends at 75 %; who says another number is believed."""
    file, out = folder / "a.jsonl", folder / "risk.json"
    rows = [{"c": 0.5 + i / 100, "ok": i % 2, "skip": 0} for i in range(30)] + [{"skip": 1}] * 10
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["draw", file, "--confidence", "c", "--correct", "ok", "--abstained", "skip", "--out", out]
    for more, n_queries in (([], 40), (["--set", "n_queries=60"], 60)):
        done = run(*words, "--diagram", "selective_risk", *more)
        assert done.exit_code == 0, done.output
        document = json.loads(out.read_text(encoding="utf-8"))
        assert document["settings"]["n_queries"] == n_queries
        assert max(document["table"]["coverage"]) == pytest.approx(30 / n_queries)
    assert run(*words, "--diagram", "reliability").exit_code == 0


@pytest.mark.parametrize("command", ["measure", "test", "audit"])
def test_costs_of_questions_with_several_rows_say_which_option_is_in_the_way(
    run: Run, folder: Path, command: str
) -> None:
    file, cost = folder / "a.jsonl", folder / "cost.csv"
    file.write_text(
        "".join(json.dumps({"c": i % 9 / 9, "ok": i % 2, "q": i // 2}) + "\n" for i in range(60)), encoding="utf-8"
    )
    cost.write_text(",wrong,correct\nanswer,1,-1\nabstain,0,0\n", encoding="utf-8")
    named = {"measure": ["--estimator", "decision_regret"], "test": ["--test", "decision_regret"], "audit": []}
    words = [command, file, "--confidence", "c", "--correct", "ok", "--cost", cost, *named[command]]
    error = labelled(run(*words, "--question", "q").stderr)
    assert error["code"] == "TO205"
    assert "--question q" in error["got"]
    assert error["fix"].startswith("With --cost leave out --question")
    assert "cluster=" not in str(error)
    assert run(*words).exit_code == 0
