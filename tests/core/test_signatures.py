"""Does a call with wrong arguments raise a coded error that names the right ones, and does `help` stay as written?"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import trueodds as to
from trueodds import InputError, Predictions
from trueodds.core.settings import Settings
from trueodds.core.signatures import checks_arguments

Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
W = [1.0, 2.0, 1.0, 1.0]
OF_ROWS = {
    "weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…), or read(path, weight=…).",
    "weights": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…), or read(path, weight=…).",
    "sample_weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…), or read(path, weight=…).",
    "group": "Groups belong to the rows: Predictions(y_true, y_prob, group=…), or read(path, group=…);",
    "groups": "Groups belong to the rows: Predictions(y_true, y_prob, group=…), or read(path, group=…);",
    "cluster": "Clusters belong to the rows: Predictions(y_true, y_prob, cluster=…), or read(path, cluster=…).",
    "classes": "The names of the classes belong to the rows: Predictions(y_true, y_prob, classes=…),"
    " or read(path, classes=…).",
    "sum_tolerance": "The tolerance belongs to the rows: Predictions(y_true, y_prob, sum_tolerance=…),"
    " or read(path, sum_tolerance=…).",
    "logits": "Predictions.from_logits(y_true, logits), or read(path, logits=…).",
    "label": "Columns are named in read: pass read(path, label=…) as the data.",
    "probs": "Columns are named in read: pass read(path, probs=…) as the data.",
}


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.code == "TO202"
    return str(refusal.value)


@pytest.mark.parametrize("verb", ["measure", "test", "power", "fit", "draw", "audit", "tally", "by_group"])
@pytest.mark.parametrize("name", OF_ROWS)
def test_every_verb_says_where_an_argument_of_the_rows_belongs(verb: str, name: str) -> None:
    assert OF_ROWS[name] in message(lambda: getattr(to, verb)(Y, P, **{name: W}))


def test_what_makes_predictions_does_not_refer_columns_to_read() -> None:
    assert message(lambda: Predictions(Y, probs=P)).endswith("Did you mean y_prob?")
    assert "Known: y_true" in message(lambda: Predictions(Y, P, label=Y))
    assert "pass read(path, label=…)" in message(lambda: to.table({"a": (Y, P)}, ["ece"], label="churned"))
    assert "pass read(path, label=…)" in message(lambda: to.compare((Y, P), (Y, P), label="churned"))


@pytest.mark.parametrize(
    ("name", "argument"),
    [("sample_weight", "weight"), ("weights", "weight"), ("groups", "group"), ("class_names", "classes")],
)
def test_predictions_name_the_argument_that_is_meant(name: str, argument: str) -> None:
    for make in (Predictions, Predictions.from_logits):
        assert message(lambda: make(Y, P, **{name: W})).endswith(f" has no argument {name!r}. Did you mean {argument}?")  # noqa: B023


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: Predictions(Y), "Predictions needs y_prob. Got y_true. Call Predictions(y_true, y_prob)."),
        (lambda: Predictions(Y, P, W), "at most 2 positional arguments: y_true, y_prob. Got 3 arguments."),
        (lambda: Predictions(Y, P, y_prob=P), "Got multiple values for argument 'y_prob'."),
        (lambda: Predictions.from_dense(Y, P, sample_weight=W), "Weights belong to the rows"),
        (lambda: to.measure(), "measure needs predictions. Got no argument. Call measure(y_true, y_prob)"),
        (lambda: to.compare(), "Call compare(y_true, p_a, p_b), or compare(a, b)."),
        (lambda: to.load(), "load needs path."),
        (lambda: to.read("x.csv", labels="y"), "read has no argument 'labels'. Did you mean label or multilabel?"),
        (lambda: to.read_answers([], probability="p"), "read_answers has no argument 'probability'. Known: "),
        (lambda: to.scorer(), "scorer needs estimator."),
        (lambda: to.tally(Y, P, seed=1), "tally has no argument 'seed'. Known: data, lenses"),
        (lambda: to.measure(Y, P, seed=1), "The estimator ece has no setting 'seed'. Did you mean rng?"),
        (lambda: to.measure(Y, P, n_bins=10), "The estimator ece has no setting 'n_bins'. Did you mean bins?"),
        (lambda: to.calibrators.Platt(minprob=0.1), "Platt has no argument 'minprob'. Did you mean min_prob?"),
        (lambda: to.calibrators.temperature(0.1), "Temperature takes no positional arguments. Got 1 argument."),
        (lambda: to.calibrators.Platt().fit(P, Y, weights=W), "has no argument 'weights'. Did you mean sample_weight?"),
        (
            lambda: to.ReliabilityDisplay.from_predictions(Y, P, weight=W),
            "Predictions(y_true, y_prob, weight=…), or read(path, weight=…).",
        ),
        (lambda: to.fit(Y, P, "platt").predict_proba(P, logit=True), "Did you mean logits?"),
        (lambda: to.ReliabilityDisplay.from_estimator(None), "Display.from_estimator needs X."),
    ],
)
def test_a_call_that_does_not_fit_the_signature_has_a_code_and_a_remedy(call: Callable[[], Any], expected: str) -> None:
    assert expected in message(call)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: to.estimators.ece(bins=10), 'Pass it with the name: to.measure(y_true, y_prob, "ece", bins=…).'),
        (lambda: to.diagrams.reliability(bins=9), 'to.draw(y_true, y_prob, "reliability", bins=…).'),
        (lambda: to.estimators.ece(ordr=2), "BinnedError has no argument 'ordr'. Did you mean order?"),
        (lambda: to.estimators.ecce_r(start=1), "CumulativeRange has no argument 'start'. It takes no keywords."),
        (lambda: to.estimators.ece(None, "tv", 1.0, 1, 2), "takes at most 4 positional arguments"),
        (lambda: to.estimators.ece()(Y, P), 'For arrays use to.measure(y_true, y_prob, "ece").'),
        (lambda: to.tests.omnibus()(Y, P), 'For arrays use to.test(y_true, y_prob, "omnibus").'),
        (lambda: to.tests.consistency()(Y, P), 'For arrays use to.test(y_true, y_prob, "consistency").'),
        (lambda: to.tests.mcllo()(Y, P), 'For arrays use to.test(y_true, y_prob, "mcllo").'),
        (lambda: to.diagrams.corp()(Y, P, 0), 'For arrays use to.draw(y_true, y_prob, "corp").'),
    ],
)
def test_an_instance_of_a_method_is_made_and_called_with_a_coded_error(call: Callable[[], Any], expected: str) -> None:
    assert expected in message(call)


@dataclass(frozen=True)
class OfAUser(Settings):
    """Settings outside the library."""

    size: int = 3


def test_settings_of_a_user_s_own_class_are_checked_too() -> None:
    assert OfAUser(size=4) == OfAUser(4)
    assert message(lambda: OfAUser(sice=4)) == "[TO202] OfAUser has no argument 'sice'. Did you mean size?"


def test_the_signature_of_a_checked_function_stays_as_written() -> None:
    assert list(inspect.signature(Predictions).parameters) == [
        "y_true", "y_prob", "weight", "group", "cluster", "classes", "sum_tolerance", "copy",
    ]  # fmt: skip
    assert list(inspect.signature(to.estimators.ece).parameters) == ["partition", "distance", "order", "min_count"]

    def plain(a: int, *, b: int = 2) -> int:
        """Add."""
        return a + b

    checked = checks_arguments(plain)
    assert (checked.__name__, checked.__doc__, checked(1, b=3)) == ("plain", "Add.", 4)
    assert inspect.signature(checked) == inspect.signature(plain)


def test_methods_can_still_be_copied_and_pickled() -> None:
    estimator = to.estimators.ece(order=2.0)
    assert pickle.loads(pickle.dumps(estimator)) == copy.deepcopy(estimator) == estimator
