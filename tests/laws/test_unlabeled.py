"""Rows without a label are refused by everything but `Monitor`, `expect` and means from few labels."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds import InputError, Predictions
from trueodds.cli import main
from trueodds.data.predictions import concatenate
from trueodds.io.read import read_unlabeled

N = 60
RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, N)
Y = (RNG.random(N) < P).astype(float)
SOME = np.where(np.arange(N) % 7 == 3, np.nan, Y)  # the first label that is missing is in row 3
GROUP = np.where(np.arange(N) % 2, "a", "b")
ACCEPTS = {"Monitor", "expect"}

MODELS = {"a": Predictions(Y, P), "b": Predictions(Y, 1 - P)}
CALIBRATOR = to.fit(MODELS["a"], "platt")

# A call of each public function that takes predictions; those of one model get the rows, of several also a labeled one.
CALLS: dict[str, Callable[[Any], Any]] = {
    "audit": lambda rows: to.audit(rows),
    "by_group": lambda rows: to.by_group(rows, "brier"),
    "compare": lambda rows: to.compare(MODELS["a"], rows, "brier"),
    "draw": lambda rows: to.draw(rows, "reliability"),
    "fit": lambda rows: to.fit(rows, "platt"),
    "measure": lambda rows: to.measure(rows, "ece"),
    "power": lambda rows: to.power(rows, "spiegelhalter", effect=0.1),
    "table": lambda rows: to.table({"a": MODELS["a"], "b": rows}, ["brier"]),
    "tally": lambda rows: to.tally(rows),
    "test": lambda rows: to.test(rows, "spiegelhalter"),
    "threshold": lambda rows: to.threshold(rows, max_risk=0.3),
}
# Public names that are given no predictions: classes, modules, and functions whose rows come from elsewhere.
OTHERS = {
    "InputError",
    "Note",
    "Predictions",
    "calibrators",
    "diagrams",
    "estimators",
    "metrics",
    "tests",
    "load",
    "read",
}
OTHERS |= {"read_answers", "scorer", "RecalibratedClassifier"}
OTHERS |= {"prediction_powered_mean", "prediction_powered_difference"}


def unlabeled(kind: str) -> Predictions:
    if kind == "logits":
        return Predictions.from_logits(SOME, np.log(P / (1 - P)), group=GROUP)
    if kind == "confidence":
        return Predictions.from_confidence(P, SOME, group=GROUP)
    if kind == "classes":
        matrix = RNG.dirichlet([1, 1, 1], N)
        return Predictions(np.where(np.isnan(SOME), np.nan, np.arange(N) % 3), matrix, group=GROUP)
    return Predictions(None if kind == "none" else SOME, P, group=GROUP)


def test_every_public_name_is_classified_here() -> None:
    displays = {name for name in to.__all__ if name.endswith("Display")}
    assert set(to.__all__) - displays - ACCEPTS == set(CALLS) | OTHERS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in CALLS
        for kind in ("some", "none", "logits", "confidence", "classes")
        # The other model of these two has two classes and their probabilities.
        if not (name in ("compare", "table") and kind in ("confidence", "classes"))
    ],
)
def test_a_row_without_a_label_is_refused_by_every_function(name: str, kind: str) -> None:
    with pytest.raises(InputError) as refused:
        CALLS[name](unlabeled(kind))
    if kind == "none":
        assert (refused.value.code, refused.value.fix) == ("TO101", "Pass an array.")
    else:
        assert refused.value.code == "TO103"
        assert "none in row 3" in refused.value.got
        assert refused.value.fix == "Fill or remove those rows; rows are never dropped silently."


def assert_refused(call: Callable[[Any], Any]) -> None:
    """Require TO103, or an error that the same rows with labels raise, too."""
    with pytest.raises(InputError) as refused:
        call(unlabeled("some"))
    if refused.value.code != "TO103":
        with pytest.raises(InputError) as of_labeled_rows:
            call(Predictions(Y, P, group=GROUP))
        assert of_labeled_rows.value.code == refused.value.code


@pytest.mark.parametrize("display", [name for name in sorted(to.__all__) if name.endswith("Display")])
def test_every_display_refuses_a_row_without_a_label(display: str) -> None:
    assert_refused(
        lambda rows: getattr(to, display).from_predictions(Y if rows.labeled is None else SOME, P, group=GROUP)
    )


@pytest.mark.parametrize("name", sorted(to.estimators.ESTIMATORS.names()))
def test_every_estimator_refuses_a_row_without_a_label(name: str) -> None:
    assert_refused(lambda rows: to.measure(rows, name, interval=None))


@pytest.mark.parametrize("name", sorted(to.tests.TESTS.names()))
def test_every_test_refuses_a_row_without_a_label(name: str) -> None:
    assert_refused(lambda rows: to.test(rows, name))


@pytest.mark.parametrize("name", sorted(to.diagrams.PREDICTION_DIAGRAMS))
def test_every_diagram_refuses_a_row_without_a_label(name: str) -> None:
    assert_refused(lambda rows: to.draw(rows, name))


@pytest.mark.parametrize("name", sorted(to.calibrators.CALIBRATORS.names()))
def test_every_calibrator_refuses_a_row_without_a_label(name: str) -> None:
    assert_refused(lambda rows: to.fit(rows, name))


def test_scikit_learn_classes_and_tensors_refuse_a_missing_label() -> None:
    torch = pytest.importorskip("torch")
    from trueodds.torch import TorchTally

    with pytest.raises(InputError, match="TO103"):
        to.calibrators.Platt().fit(P, SOME)
    with pytest.raises(InputError, match=r"TO10[35]|TO114"):
        TorchTally(2).update(torch.tensor(P), torch.tensor(SOME))


def test_y_and_one_hot_outcomes_cannot_be_read_before_labeled_is_checked() -> None:
    for kind in ("some", "none", "logits", "confidence", "classes"):
        preds = unlabeled(kind)
        assert preds.labeled is not None
        for attribute in ("y", "Y"):
            with pytest.raises(InputError, match=r"TO10[13]"):
                getattr(preds, attribute)
    assert Predictions(Y, P).labeled is None
    assert Predictions([[2, 1], [0, 3]], [0.2, 0.7]).labeled is None  # votes


def test_subsets_copies_and_joined_rows_keep_what_is_missing() -> None:
    preds = unlabeled("some")
    is_labeled = ~np.isnan(SOME)
    np.testing.assert_array_equal(preds.labeled, is_labeled)
    for same in (
        preds[:],
        copy.copy(preds),
        pickle.loads(pickle.dumps(preds)),
        preds.with_notes(),
        preds.without_clusters(),
    ):
        np.testing.assert_array_equal(same.labeled, is_labeled)
        with pytest.raises(InputError, match="TO103"):
            same.require_labels()
    assert preds[is_labeled].labeled is None
    assert preds[is_labeled].y.tolist() == Y[is_labeled].tolist()
    assert preds[~is_labeled].labeled.tolist() == [False] * int((~is_labeled).sum())
    both = concatenate([Predictions(Y, P, group=GROUP), preds])
    assert both.labeled.tolist() == [True] * N + is_labeled.tolist()
    assert preds.with_labels(np.zeros(N)).labeled is None
    assert "without label" in repr(preds)


@pytest.mark.parametrize(
    "values", [["no", None, "yes"], ["no", np.nan, "yes"], [False, None, True], [0, float("nan"), 1]]
)
def test_a_missing_label_in_a_list_is_no_name_of_a_class(values: list[Any]) -> None:
    preds = Predictions(values, P[:3], classes=["no", "yes"] if "no" in values else None)
    assert preds.partial_y.tolist() == [0, -1, 1]


LABELS = {
    "text": ["ant", "", "bee", "cat", "", "ant", "bee"],
    "number": ["0", "", "2", "1", "1", "", "0"],
    "later": ["", "", "", "", "ant", "bee", "cat"],
    "spelled": ["0", "NA", "2", "1", "1", "nan", "0"],
}
CODES = {
    "text": [0, -1, 1, 2, -1, 0, 1],
    "number": [0, -1, 2, 1, 1, -1, 0],
    "later": [-1, -1, -1, -1, 0, 1, 2],
    "spelled": [0, -1, 2, 1, 1, -1, 0],
}


def write_csv(path: Path, labels: list[str] | None) -> Path:
    rows = ["p_ant,p_bee,p_cat" + ("" if labels is None else ",label")]
    rows += ["0.2,0.3,0.5" + ("" if labels is None else f",{label}") for label in labels or [""] * 7]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", LABELS)
def test_files_are_read_without_labels_only_on_request_and_in_any_batches(tmp_path: Path, kind: str) -> None:
    path = write_csv(tmp_path / "rows.csv", LABELS[kind])
    source = to.read(path, batch_rows=2)
    for batches in (source.with_unlabeled().batches(), [source.with_unlabeled().collect()]):
        parts = list(batches)
        assert np.concatenate([part.partial_y for part in parts]).tolist() == CODES[kind]
        assert {part.classes for part in parts} == {("ant", "bee", "cat")}
    with pytest.raises(InputError, match=r"TO308.*row [01]|TO105.*row 1"):  # the source itself is as before
        to.measure(source, "brier")


def test_a_file_needs_no_column_of_labels_but_one_that_is_named_must_exist(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", None)
    preds = read_unlabeled(path).collect()
    assert (preds.labeled.any(), preds.partial_y, preds.classes) == (False, None, ("ant", "bee", "cat"))
    with pytest.raises(InputError, match=r"TO304.*label='outcome'"):
        read_unlabeled(path, label="outcome")
    with pytest.raises(InputError, match=r"TO304.*label=None.*Name the label's column"):
        to.measure(to.read(path, label=None), "brier")


OPTIONS = {"compare": ["{0}", "{1}"], "fit": ["{0}", "--out", "{2}"], "tally": ["{0}", "--out", "{2}"]}
OPTIONS |= {"draw": ["{0}", "--out", "{2}"], "groups": ["{0}", "--group", "p_ant"], "power": ["{0}", "--effect", "0.1"]}
WITHOUT_ROWS = {"answers", "apply", "explain", "list", "merge", "study"}  # or that need no label


@pytest.mark.parametrize(
    "command", sorted(set(main.list_commands(click.Context(main))) - WITHOUT_ROWS - {"expect", "judge", "monitor"})
)
def test_every_command_refuses_a_missing_label(tmp_path: Path, command: str) -> None:
    path = write_csv(tmp_path / "rows.csv", LABELS["text"])
    other = write_csv(tmp_path / "other.csv", ["ant", "bee", "cat", "ant", "bee", "cat", "ant"])
    arguments = [
        text.format(path, other, tmp_path / "out.svg" if command == "draw" else tmp_path / "out.json")
        for text in OPTIONS.get(command, ["{0}"])
    ]
    result = CliRunner().invoke(main, [command, *arguments])
    assert result.exit_code == 2
    assert "TO308" in result.output
    assert "Fill or remove those rows; rows are never dropped silently." in result.output
