"""Do messages name options, where the library names keywords?"""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from pathlib import Path

import pytest

import trueodds
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled
from trueodds.cli.messages import _OPTION_OF_ARGUMENT, spell_error, spell_notes, spell_options
from trueodds.core.errors import InputError, Message, Note


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pass ⟨sum_tolerance=⟩; or ⟨logits=True⟩.", "Pass --sum-tolerance 0.02; or --logits 'p_*'."),
        ("⟨Call from_confidence(confidence, correct)⟩.", "Pass --confidence C --correct C."),
        ("If independent, ⟨Predictions.from_multilabel⟩.", "If independent, --multilabel 'y_*'."),
        ("rows belong in ⟨cluster=⟩.", "rows belong in --cluster C."),
        ("Use ⟨mode='exact'⟩.", "Use --mode exact."),
        ("the rows: ⟨mode='exact' (--mode exact)⟩.", "the rows: --mode exact."),
        ("Use ⟨lens='class:NAME'⟩ or ⟨order=1⟩.", "Use --lens class:NAME or --order 1."),
        ("Use ⟨region='confidence > 0.9'⟩.", "Use --region 'confidence > 0.9'."),
        ("For instance ⟨classes=['no', 'yes']⟩.", "For instance --classes no,yes."),
        ("For instance ⟨bins=[0, 0.1, …, 1]⟩.", "For instance --bins '[0, 0.1, …, 1]'."),
        ("For instance ⟨figsize=(5, 4)⟩.", "For instance --figsize 5,4."),
        ("Try ⟨min_prob=1e-12⟩.", "Try --min-prob 1e-12."),
        ("Try ⟨min_count=10⟩ or ⟨resamples=999⟩.", "Try --set min_count=10 or --resamples 999."),
        ("⟨simultaneous=True⟩ gives", "--set simultaneous=true gives"),
        ("Leave ⟨weight_kind⟩ at 'importance'.", "Leave --weight-kind at 'importance'."),
        ("Pass ⟨rng=0⟩.", "Pass --seed 0."),
        ("Pass ⟨cluster=⟩ and ⟨null='redraw'⟩.", "Pass --cluster C and --set null=redraw."),
        ("For instance ⟨classes=[1, 2]⟩.", "For instance --classes 1,2."),
        ("Got ⟨label=None⟩.", "Got no --label."),
        ("Name each: ⟨group=['sex', 'big size']⟩.", "Name each: --group sex --group 'big size'."),
        ("Run ⟨to.fit(preds, 'platt', between='step')⟩.", "Run trueodds fit FILE --method platt --between step."),
        # What has no option keeps its spelling, and what is not marked is left alone: it may be from the data.
        ("Try ⟨smoothness=2⟩ with label=1.", "Try smoothness=2 with label=1."),
        ("no interval for level=2, region=north", "no interval for level=2, region=north"),
    ],
)
def test_marked_arguments_become_options(text: str, expected: str) -> None:
    assert spell_options(Message(text)) == expected


def test_python_shows_messages_without_their_marks() -> None:
    error = InputError("TO203", "⟨level=2⟩ is too large.", "⟨level=2⟩", "Pass ⟨level=0.95⟩.")
    assert str(error) == "[TO203] level=2 is too large. Got level=2. Pass level=0.95."
    assert str(spell_error(error)) == "[TO203] --level 2 is too large. Got --level 2. Pass --level 0.95."
    note = Note("TN101", "Pass ⟨rng=0⟩.")
    assert (str(note), note.to_dict()["text"], json.dumps(note.text)) == (
        "[TN101] Pass rng=0.",
        "Pass rng=0.",
        '"Pass rng=0."',
    )


def test_marks_are_kept_where_texts_are_added_replaced_copied_shortened_and_pickled() -> None:
    message = Message("Pass ⟨rng=0⟩ to a.")
    for text in ("b: " + message, message.replace("a", "b"), message + " Or ⟨rng=1⟩.", copy.deepcopy(message)):
        assert "--seed 0" in spell_options(text)
    error = pickle.loads(pickle.dumps(InputError("TO203", "Wrong.", "x", f"Pass ⟨rng=0⟩. {'Read it. ' * 60}")))
    assert len(str(error)) <= 400
    assert spell_error(error).fix.startswith("Pass --seed 0. ")


# Errors that only Python users see, whose arguments the command line does not have.
PYTHON_ONLY = (
    "api/scorer.py",
    "calibrators/sklearn.py",
    "calibrators/torch.py",
    "integrations",
    "metrics",
    "torch",
    "kernels",
)


@pytest.mark.slow
def test_the_arguments_in_the_texts_of_errors_and_notes_are_marked() -> None:
    package = Path(trueodds.__file__).parent
    options = "|".join(_OPTION_OF_ARGUMENT)
    unmarked = re.compile(rf"(?<![\w./=-])(?:{options})=(?:'|\[|True|False|None|\d|$|[\s.,;:)])")
    found = []
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package).as_posix()
        if name.startswith(("cli/", *PYTHON_ONLY)):
            continue
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("InputError", "Note"):
                for text in (ast.unparse(arg) for arg in call.args[1:]):
                    found += [f"{name}: {match[0]}" for match in unmarked.finditer(re.sub("⟨.*?⟩", "", text))]
    assert found == []


def test_a_missing_column_is_selected_by_its_option() -> None:
    error = spell_error(InputError("TO304", "label=1.csv has no such column.", "⟨label='y'⟩", "The only column is z."))
    assert (error.problem, error.got, error.fix) == (
        "label=1.csv has no such column.",
        "--label y",
        "The only column is z. Select one with --label.",
    )
    error = spell_error(InputError("TO304", "x.csv has no such column.", "⟨label='y'⟩", "Did you mean label=1?"))
    assert error.fix == "Did you mean label=1? Select it with --label."


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("table", "words", "code", "fix"),
    [
        ("label,p_0,p_1\n0,-2,3\n", [], "TO102", "--logits 'p_*'"),
        ("label,p_0,p_1\n0,0.6,0.41\n", [], "TO104", "--sum-tolerance 0.02"),
        ("label,p_0,p_1\n7,0.4,0.6\n", [], "TO105", "--classes A,B,C"),
        ("y,p_0,p_1\n0,0.4,0.6\n", [], "TO304", "--label"),
        ("label,q_0,q_1\n0,0.4,0.6\n", [], "TO305", "--probs"),
        ("label,p_0,p_1\n0,0.4,0.6\n", ["--votes", "v_*"], "TO305", "--votes"),
        ("label,p_0,p_1\n0,0.4,0.6\n", ["--votes", "p_*"], "TO603", "--votes"),
        ("conf\n0.4\n", ["--confidence", "conf"], "TO601", "Add --correct C"),
        ("conf\n0.4\n", ["--correct", "conf"], "TO601", "Add --confidence C"),
        ("v_0,v_1,p_0,p_1\n1,2,0.4,0.6\n", [], "TO304", "For votes pass --votes 'v_*'"),
        ("confidence,correct\n0.4,1\n", [], "TO304", "pass --confidence confidence and --correct correct"),
        ("c,ok\n40,1\n", ["--confidence", "c", "--correct", "ok"], "TO102", "If 70 means 70 %, say --percent."),
        (
            "c,ok\n,1\n.4,0\n",
            ["--confidence", "c", "--correct", "ok"],
            "TO308",
            "says so by --abstained F; that may be",
        ),
        (
            "label,p_0,sex,big size\n1,0.4,F,x\n",
            ["--group", "sex,big size"],
            "TO304",
            "--group sex --group 'big size'.",
        ),
    ],
)
def test_an_error_about_a_file_names_the_option(
    run: Run, folder: Path, table: str, words: list[str], code: str, fix: str
) -> None:
    error = labelled(run("audit", written(folder / "x.csv", table), *words).stderr)
    assert error["code"] == code
    assert fix in error["fix"]
    assert "=" not in error["got"] + error["fix"]


def test_notes_name_options_and_json_the_keywords(run: Run, overconfident: str, folder: Path) -> None:
    done = run("test", overconfident, "--resamples", 99, "--json", folder / "t.json")
    assert "cluster=" not in done.stdout
    assert "--cluster C" in done.stdout
    assert "cluster=" in (folder / "t.json").read_text(encoding="utf-8")
    done = run("draw", overconfident, "--out", folder / "d.csv")
    assert "--set simultaneous=true" in done.stdout


def test_the_notes_of_an_audit_name_options_and_its_json_is_left_alone() -> None:
    text = Message("Pass ⟨simultaneous=True⟩.")
    report = {"measures": [{"notes": [{"code": "TN1", "text": text}], "n": 3}], "notes": []}
    assert spell_notes(report)["measures"][0]["notes"][0]["text"] == "Pass --set simultaneous=true to trueodds draw."
    assert report["measures"][0]["notes"][0]["text"] == "Pass simultaneous=True."


def test_groups_are_called_what_the_data_call_them(run: Run, folder: Path) -> None:
    """Columns may have the names of options, and values may be numbers; what the tool itself prints is an option."""
    lines = ["label,p_0,p_1,level,region"]
    lines += [f"{i % 2},0.{i % 9 + 1},0.{9 - i % 9},{min(i, 1)},{'north' if i < 20 else 'south'}" for i in range(40)]
    file = written(folder / "g.csv", "\n".join(lines) + "\n")
    words = [file, "--group", "level", "--group", "region", "--crossings", "--resamples", 99]
    for done in (run("groups", *words), run("audit", *words)):
        text = " ".join(done.stdout.split())
        assert "No interval for groups of one row: level=0; level=0, region=north" in text
        assert "--level 0" not in text
        assert "--region" not in text
        assert "--cluster C" in text


def test_the_remedy_of_a_missing_interval_is_a_command_that_gives_one(
    run: Run, overconfident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueodds.resampling.intervals.method.MAX_RESAMPLED_ROWS", 100)
    monkeypatch.setattr("trueodds.resampling.draws.MAX_GROUP_SUMS", 0)  # as for very many bins
    for words in (("audit", overconfident, "--resamples", 99), ("measure", overconfident, "--lens", "classwise")):
        text = " ".join(run(*words).stdout.split())
        command = re.search(r"\[TN201\][^[]* by trueodds (measure FILE [\w -]*--resample rows)\.", text)
        assert command is not None, text
        words = command[1].replace("FILE", overconfident).split()
        done = run(*words, "--resamples", 100)
        assert "TN201" not in done.stdout
        assert re.match(r"ece [\d.]+ \[[\d.]+, [\d.]+\] 95%", done.stdout)
