"""Check what must hold for any rows: order, weights, merging and names do not change a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.selftest.outcomes import FAILED, NOT_CHECKED, PASSED, Check, describe_error, largest_deviation

SECTION = "laws"
Comparison: TypeAlias = tuple[str, str, list[float], list[float]]  # family, method, its results, and the expected ones
Law: TypeAlias = Callable[[Predictions], Iterator[Comparison]]
MAX_ROWS = 20_000  # number of rows of a file that are examined
RTOL, ATOL = 1e-8, 1e-11  # sums in another order differ by rounding
# Estimators with the least and the most structure: bins, ranks, kernels, scores, and a logistic regression.
ESTIMATORS = ("ece", "mce", "debiased_l2", "ks", "corp", "smece", "brier", "log_loss", "calibration_in_the_large")
COPIES = ("ece", "mce", "ks", "corp", "brier", "log_loss", "calibration_in_the_large")  # those to which it applies
TESTS = ("spiegelhalter", "hosmer_lemeshow", "ecce")
SCORES = ("brier", "log_loss")
CALIBRATORS = ("temperature", "platt", "isotonic")
TALLIED: dict[str, dict[str, Any]] = {
    "ece": {"bins": 10},
    "mce": {"bins": 10},
    "brier": {},
    "calibration_in_the_large": {},
}


def built_in_rows(n_classes: int) -> Predictions:
    """Return simulated rows with many equal scores: multiples of 1/20, which lie on the edges of bins.

    >>> built_in_rows(2)
    Predictions(n=240, 2 classes)
    """
    rng = np.random.default_rng(n_classes)
    if n_classes == 2:
        p = rng.integers(1, 20, 240) / 20
        return Predictions((rng.random(240) < p**1.3).astype(int), p)
    shares = rng.multinomial(20 - n_classes, np.ones(n_classes) / n_classes, 240) + 1
    P = shares / 20
    labels = (P.cumsum(axis=1) < rng.random((240, 1))).sum(axis=1).clip(max=n_classes - 1)
    return Predictions(labels, P)


def check_laws(preds: Predictions, rows: str, progress: Callable[[float], None]) -> Iterator[Check]:
    """Check all laws on these rows, which the details call `rows`."""
    laws: Sequence[tuple[str, Law]] = (
        ("the order of rows is irrelevant", _permuted_rows),
        ("a weight of two is two rows", _copied_rows),
        ("merged tallies are the tally of all rows", _merged_tallies),
        ("names and order of classes are irrelevant", _renamed_classes),
    )
    for done, (name, law) in enumerate(laws):
        progress(done / len(laws))
        yield _check_law(f"{name} ({rows})", law, preds)


def _check_law(name: str, law: Law, preds: Predictions) -> Check:
    """Compare all pairs of results of a law; one that differs or raises an error fails it."""
    methods, worst, wrong = [], 0.0, []
    try:
        for family, method, values, expected in law(preds):
            methods.append(f"{family}:{method}")
            is_same = np.array_equal(values, expected, equal_nan=True)  # both may be undefined
            deviation = 0.0 if is_same else largest_deviation(values, expected, RTOL, ATOL)
            worst = max(worst, deviation)
            if deviation > 1:
                wrong.append(f"{method} is {values[0]:.12g} instead of {expected[0]:.12g}")
    except (InputError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as problem:
        wrong.append(describe_error(problem))
    if wrong:
        return Check(SECTION, name, FAILED, "; ".join(wrong), methods=tuple(methods))
    if not methods:
        return Check(SECTION, name, NOT_CHECKED, "no method that it concerns accepts these rows")
    detail = f"{len(methods)} methods, largest difference {worst * RTOL:.0e}, as rounding allows"
    return Check(SECTION, name, PASSED, detail, methods=tuple(methods))


def _measured(preds: Any, name: str, **settings: Any) -> list[float] | None:
    """Return the value of an estimate; None if the estimator does not accept such rows."""
    try:
        return [to.measure(preds, name, interval=None, **settings).value]
    except InputError:
        return None


def _measured_tally(tally: Any, name: str) -> list[float] | None:
    return _measured(tally, name, **TALLIED[name])


def _tested(preds: Predictions, name: str) -> list[float] | None:
    try:
        verdict = to.test(preds, name, null="asymptotic", progress=False)
    except InputError:
        return None
    return [verdict.statistic, verdict.pvalue]


def _recalibrated(preds: Predictions, name: str, points: Array) -> list[float] | None:
    try:
        return [float(q) for q in to.fit(preds, name).predict_proba(points).ravel()]
    except InputError:
        return None


def _pairs(
    family: str, names: Sequence[str], first: Callable[[str], list[float] | None], second: Callable[[str], Any]
) -> Iterator[Comparison]:
    """Yield both results of each method that accepts the rows; if it then refuses the other rows, they differ."""
    for name in names:
        if (expected := first(name)) is not None:
            yield family, name, second(name) or [np.nan], expected


def _permuted_rows(preds: Predictions) -> Iterator[Comparison]:
    permuted = preds[np.random.default_rng(0).permutation(preds.n)]
    yield from _pairs("estimators", ESTIMATORS, lambda n: _measured(preds, n), lambda n: _measured(permuted, n))
    if preds.votes is None:  # of several votes, a test draws one for each row, in the order of the rows
        yield from _pairs("tests", TESTS, lambda n: _tested(preds, n), lambda n: _tested(permuted, n))
    points = preds.P[:20]
    yield from _pairs(
        "calibrators",
        CALIBRATORS,
        lambda n: _recalibrated(preds, n, points),
        lambda n: _recalibrated(permuted, n, points),
    )


def _copied_rows(preds: Predictions) -> Iterator[Comparison]:
    """Compare rows of which each third is there twice with the rows of which each third has the weight 2."""
    if preds.weight is not None or preds.kind != "classes":
        return
    weight = np.where(np.arange(preds.n) % 3 == 0, 2.0, 1.0)
    copies = preds[np.repeat(np.arange(preds.n), weight.astype(int))]
    outcomes = preds.votes if preds.y is None else preds.y
    weighted = Predictions(outcomes, preds.p, classes=list(preds.classes), weight=weight)
    yield from _pairs("estimators", COPIES, lambda n: _measured(copies, n), lambda n: _measured(weighted, n))


def _merged_tallies(preds: Predictions) -> Iterator[Comparison]:
    if preds.cluster is not None or preds.n < 3:  # a tally does not keep clusters
        return
    thirds = [to.tally(preds[part], progress=False) for part in np.array_split(np.arange(preds.n), 3)]
    whole = to.tally(preds, progress=False)
    for merged in ((thirds[0] + thirds[1]) + thirds[2], thirds[2] + (thirds[1] + thirds[0])):
        yield from _pairs(
            "estimators",
            list(TALLIED),
            lambda n: _measured(preds, n, mode="exact", **TALLIED[n]),
            partial(_measured_tally, merged),
        )
        yield "tallies", "sums", [merged.n, merged.weight], [whole.n, whole.weight]


def _renamed_classes(preds: Predictions) -> Iterator[Comparison]:
    """Compare with the classes in reverse order, the first of which gets a name that sorts after the others.

    Rows whose largest probabilities are equal are left out, because the first of these classes is the predicted one.
    """
    if preds.kind != "classes" or preds.y is None:
        return
    two_largest = np.partition(preds.P, -2, axis=1)[:, -2:]
    is_clear = two_largest[:, 0] < two_largest[:, 1]
    if not is_clear.any():
        return
    preds = preds[is_clear]
    names = [f"renamed {number:04d}" for number in range(preds.k)]
    labels = preds.k - 1 - np.asarray(preds.y)
    renamed = Predictions(labels, preds.P[:, ::-1], classes=names, weight=preds.weight)
    # Bins of two classes are closed on the right, and their mirror images are not.
    chosen = SCORES if preds.k == 2 else [name for name in ESTIMATORS if name != "calibration_in_the_large"]
    yield from _pairs("estimators", chosen, lambda n: _measured(preds, n), lambda n: _measured(renamed, n))
