"""Does the remedy of an error work where it is given?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import trueodds as to
from trueodds.core.errors import InputError

rng = np.random.default_rng(0)
N = 200
p = rng.random(N)
y = (rng.random(N) < p).astype(int)
P = rng.dirichlet([1, 1, 1], N)
Y = (P.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
ANIMALS = np.array(["cat", "dog"])[y]


@cache
def tally() -> to.Tally:
    return to.tally(y, p)


@pytest.mark.parametrize(
    ("call", "code", "remedy"),
    [
        (
            lambda: to.measure(ANIMALS, p), "TO106",
            (
                "Pass Predictions(y_true, y_prob, classes=['cat', 'dog'])"
                " if y_prob is the probability of the second class."
            ),
        ),
        (
            lambda: to.measure(ANIMALS, np.stack([1 - p, p], axis=1)), "TO106",
            "Pass Predictions(y_true, y_prob, classes=['cat', 'dog']), with the names in the order of the columns.",
        ),
        (
            lambda: to.measure(ANIMALS, P), "TO106",
            "Pass Predictions(y_true, y_prob, classes=[…]), with the names in the order of the columns.",
        ),
        (
            lambda: to.measure(Y + 1, P), "TO105",
            (
                "If they start at 1, subtract 1, or pass Predictions(y_true, y_prob, classes=[1, 2, 3]), with the names"
                " in the order of the columns."
            ),
        ),
        (lambda: to.measure(Y, P.T), "TO107", "y_prob has one column per row of y_true: pass its transpose, y_prob.T."),
        (lambda: to.power(y, p, effect=3), "TO203", "effect is a fraction: 0.03, not 3."),
        (lambda: to.test(y, p, margin=5), "TO203", "margin is a fraction: 0.05, not 5."),
        (lambda: to.measure(y, p, level=95), "TO203", "level is a fraction: 0.95, not 95."),
        (lambda: to.audit(y, p, alpha=5), "TO203", "alpha is a fraction: 0.05, not 5."),
        (lambda: to.measure(y, p, level=-1), "TO203", "For instance level=0.95."),
        (lambda: to.measure(y, p, interval="none"), "TO203", "Pass interval=None, without quotes."),
        (lambda: to.measure(y, p, bins="x"), "TO203", "For instance bins=15."),
        (lambda: to.measure(y, p, ["ece", "brier"]), "TO201", "Call it once per estimator."),
        (lambda: to.test(y, p, ["omnibus", "cox"]), "TO201", "Call it once per test."),
        (
            lambda: to.measure(y, p, lens=["positive", "confidence"]), "TO204",
            "Call it once per lens; only test takes several, which it tests jointly.",
        ),
        (lambda: to.test(y, p, "hosmer"), "TO201", "Did you mean hosmer_lemeshow?"),
        (lambda: to.fit(y, p, "temp"), "TO201", "Did you mean temperature?"),
        (
            lambda: to.test(y, p, statistics="brier"), "TO202",
            "statistic is a setting of the test 'consistency': to.test(preds, 'consistency', statistic=…).",
        ),
        (lambda: to.power(tally(), effect=0.1), "TO403", "Pass the predictions from which the tally was made."),
        (lambda: to.by_group(tally()), "TO403", "Pass the predictions from which the tally was made."),
        (lambda: to.measure(tally(), "skce"), "TO403", "Use its default lens, or pass the predictions."),
        (lambda: to.test(tally(), "skce"), "TO403", "Pass the predictions."),
    ],
)  # fmt: skip
def test_the_remedy_fits_the_call(call: Callable[[], Any], code: str, remedy: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert (refusal.value.code, refusal.value.fix) == (code, remedy)


def test_a_rounded_table_is_read_with_the_tolerance_that_the_error_names() -> None:
    rounded = P.round(2)  # sums are off by at most 0.015, and a sum of two decimals by 0.01
    with pytest.raises(InputError) as refusal:
        to.measure(Y, rounded)
    assert "pass Predictions(y_true, y_prob, sum_tolerance=0.02);" in refusal.value.fix
    assert to.measure(to.Predictions(Y, rounded, sum_tolerance=0.02), interval=None).n == N
    with pytest.raises(InputError) as refusal:
        to.fit(Y, P, "temperature").predict_proba(rounded)
    assert "pass sum_tolerance=0.02;" in refusal.value.fix
    with pytest.raises(InputError) as refusal:
        to.calibrators.Temperature().fit(rounded, Y)
    assert "pass each row divided by its sum; if these are logits, pass logits=True" in refusal.value.fix


def test_sums_that_are_far_from_1_are_not_taken_for_rounding() -> None:
    with pytest.raises(InputError) as refusal:
        to.measure(Y, P / 2)
    assert refusal.value.fix.startswith("If a class is missing, pass the columns of all classes; if these are logits")


def test_models_with_different_numbers_of_rows_are_not_told_to_sort_them() -> None:
    def note(other: slice) -> str:
        rows = to.Predictions(np.roll(y, 1)[other], np.roll(p, 1)[other])
        comparison = to.compare(to.Predictions(y, p), rows, "brier", interval=None)
        return next(note.text for note in comparison.notes if note.code == "TN227")

    assert note(slice(0, 150)) == "Compared as independent samples (a and b: they have 200 and 150 rows)."
    assert "If these are the same rows, pass paired=True and either ids" in note(slice(None))


@pytest.mark.parametrize("missing", [float("nan"), None])
@pytest.mark.parametrize("column", ["group", "cluster"])
def test_a_missing_group_among_names_is_refused_and_not_read_as_a_name(column: str, missing: Any) -> None:
    for values in ([missing] + ["a"] * (N - 1), np.array([missing] + ["a"] * (N - 1), dtype=object)):
        with pytest.raises(InputError) as refusal:
            to.Predictions(y, p, **{column: values})
        assert refusal.value.code == "TO112"
        assert refusal.value.got.endswith("in row 0 (1 such value)")
        assert refusal.value.fix == "Give missing values a name, such as 'unknown'."
    assert to.Predictions(y, p, group=["nan"] + ["a"] * (N - 1)).group["group"][0] == "nan"  # a name is a name


def test_a_column_of_logits_between_0_and_1_is_noted_as_doubtful() -> None:
    def noted(z: Any, labels: Any) -> bool:
        return any(note.code == "TN108" for note in to.Predictions.from_logits(labels, z).notes)

    assert noted(p, y)
    assert not noted(p[:9], y[:9])  # so few logits may lie there by chance
    assert not noted(np.log(p / (1 - p)), y)


FITTED = LogisticRegression().fit(p[:, None], y)


@pytest.mark.parametrize(
    "call",
    [
        lambda: to.measure(FITTED),
        lambda: to.measure(y, FITTED),
        lambda: to.measure(FITTED, p[:, None], y),
        lambda: to.audit((y, FITTED)),
        lambda: to.table({"a": (y, FITTED), "b": (y, p)}),
        lambda: to.compare(y, FITTED, FITTED),
        lambda: to.Predictions(y, FITTED),
    ],
)
def test_a_classifier_in_place_of_probabilities_is_told_how_to_pass_it(call: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match="LogisticRegression") as refusal:
        call()
    assert refusal.value.fix == "This is a model: use Predictions.from_estimator(model, X, y)."
    assert to.Predictions.from_estimator(FITTED, p[:, None], y).n == N


def test_a_frame_with_columns_called_as_methods_of_a_classifier_is_no_classifier() -> None:
    frame = pd.DataFrame({"label": y, "fit": 1 - p, "predict": p})
    assert to.measure(to.read(frame, label="label", probs=["fit", "predict"], classes=["fit", "predict"])).n == N


@pytest.mark.parametrize("function", [to.audit, to.measure, to.test, to.fit, to.draw, to.by_group, to.power, to.tally])
@pytest.mark.parametrize("make_models", [list, lambda models: dict(enumerate(models))])
def test_several_models_are_told_which_functions_take_them(function: Any, make_models: Any) -> None:
    models = make_models([to.Predictions(y, p), to.Predictions(y, p**2)])
    with pytest.raises(InputError) as refusal:
        function(models)
    if function is to.draw and isinstance(models, dict):
        assert refusal.value.fix.startswith("Pass ['reliability'], a list, for a grid")
    else:
        assert "for several use to.table(models), to.compare(models)" in refusal.value.fix
        assert refusal.value.fix.endswith('to.draw({"a": a, "b": b}, ["reliability"]).')


def test_the_functions_that_are_named_for_several_models_take_them() -> None:
    a, b = to.Predictions(y, p), to.Predictions(y, p**2)
    assert len(to.table([a, b], ["brier"], interval=None).names) == 2
    assert set(to.draw({"a": a, "b": b}, ["reliability"]).frame()["model"]) == {"a", "b"}


BINNED = to.Predictions(y, p, group=["a", "b"] * (len(y) // 2))
VERBS = {
    "measure": lambda **settings: to.measure(BINNED, "ece", **settings),
    "test": lambda **settings: to.test(BINNED, "consistency", **settings),
    "table": lambda **settings: to.table({"m": BINNED}, ["ece", "brier"], **settings),
    "compare": lambda **settings: to.compare(BINNED, BINNED, "ece", **settings),
    "by_group": lambda **settings: to.by_group(BINNED, "ece", **settings),
    "fit": lambda **settings: to.fit(BINNED, "histogram", **settings),
    "draw": lambda **settings: to.draw(BINNED, "reliability", **settings),
    "power": lambda **settings: to.power(BINNED, "consistency", **settings),
    "scorer": lambda **settings: to.scorer("ece", **settings),
}


def refused(call: Callable[[], Any]) -> str:
    """Return the remedy of the error of a call."""
    with pytest.raises(InputError) as refusal:
        call()
    return refusal.value.fix


@pytest.mark.parametrize("verb", VERBS)
def test_the_settings_of_other_libraries_are_answered_with_setting_and_value(verb: str) -> None:
    call = VERBS[verb]
    for value in ("quantile", "equal-mass", "equal frequency"):
        assert refused(lambda: call(strategy=value)) == "Did you mean partition='equal-mass'?"  # noqa: B023
    assert refused(lambda: call(adaptive=True)) == "Did you mean partition='equal-mass'?"
    assert refused(lambda: call(strategy=["quantile"])) == "Did you mean partition?"
    assert refused(lambda: call(n_bins=10)) == "Did you mean bins?"
    if verb != "power":  # whose seed is an argument of the simulation
        assert refused(lambda: call(random_state=1)) == "Did you mean rng?"
    if verb in ("measure", "table", "compare", "by_group", "draw"):
        assert refused(lambda: call(alpha=0.1)) == "Did you mean level (1 − alpha)?"


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: to.test(y, p, strategy="quantile"), "to.test(preds, 'consistency', partition='equal-mass')"),
        (lambda: to.test(y, p, bins=5), "bins is a setting of the test 'consistency'"),
        (lambda: to.fit(y, p, n_bins=5), "to.fit(preds, 'histogram', bins=…)"),
        (lambda: to.audit(y, p, strategy="quantile"), "to.measure(preds, 'ece', partition='equal-mass')"),
        (lambda: to.audit(y, p, lens="binary"), "to.measure(preds, 'ece', lens=…)"),
        (lambda: to.test(y, p, "static_ece"), "Its test is to.test(preds, 'consistency', statistic='sce')"),
        (lambda: to.draw(y, p, "cwece"), "to.measure(preds, 'ece', lens='classwise')"),
        (lambda: to.scorer("ece", sample_weight=1), "scorer(model, X, y, sample_weight=…)"),
        (lambda: to.table({"m": BINNED}, ["brier"], bins=5), "Known: decomposition"),
        (lambda: to.table({"m": BINNED}, [to.estimators.ece()], bins=5), "are set on the instance"),
    ],
)
def test_a_setting_that_a_call_lacks_is_answered_with_the_call_that_has_it(call: Callable[[], Any], fix: str) -> None:
    assert fix in refused(call)


@pytest.mark.parametrize(
    ("lens", "fix"),
    [
        ("binary", "Did you mean positive?"),
        ("marginal", "Did you mean classwise?"),
        ("Top-1", "Did you mean confidence?"),
        ("multiclass", "Did you mean canonical or classwise or confidence?"),
    ],
)
def test_other_names_of_a_lens_are_answered_with_its_name(lens: str, fix: str) -> None:
    with pytest.raises(InputError) as refusal:
        to.measure(y, p, lens=lens)
    assert refusal.value.fix == fix


def test_the_static_calibration_error_is_found_by_its_other_name() -> None:
    with pytest.raises(InputError) as refusal:
        to.measure(Y, P, "static_ece")
    assert refusal.value.fix == "Did you mean sce?"
