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
Outcome: TypeAlias = list[float] | str  # numbers, or why there are none
Comparison: TypeAlias = tuple[str, str, Outcome, Outcome]  # family, method, its outcome, and the expected one
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


def check_laws(
    preds: Predictions, rows: str, progress: Callable[[float], None], *, are_built_in: bool = False
) -> Iterator[Check]:
    """Check all laws on these rows, which the names of the checks call `rows`.

    A method that refuses the rows fails on the built-in ones. On others it is listed as not checked, with the reason.
    """
    laws: Sequence[tuple[str, Law]] = (
        ("the order of rows is irrelevant", _permuted_rows),
        ("a weight of two is two rows", _copied_rows),
        ("merged tallies are the tally of all rows", _merged_tallies),
        ("names and order of classes are irrelevant", _renamed_classes),
    )
    for done, (name, law) in enumerate(laws):
        progress(done / len(laws))
        yield from _check_law(f"{name} ({rows})", law, preds, are_built_in)


def _check_law(name: str, law: Law, preds: Predictions, are_built_in: bool) -> Iterator[Check]:
    """Compare all pairs of results of a law; one that differs or raises an error fails it."""
    methods, worst, wrong, refused = [], 0.0, [], {}
    try:
        for family, method, values, expected in law(preds):
            reason = _reason(values, expected)
            if reason and not are_built_in:
                refused[f"{family}:{method}"] = reason
                continue
            methods.append(f"{family}:{method}")
            if reason or isinstance(values, str) or isinstance(expected, str):
                wrong.append(f"{method}: {reason or f'{_shown(values)} instead of {_shown(expected)}'}")
            elif not np.array_equal(values, expected, equal_nan=True):
                deviation, shown, target = largest_deviation(values, expected, RTOL, ATOL)
                worst = max(worst, deviation)
                if deviation > 1:
                    wrong.append(f"{method} is {shown} instead of {target}")
    except (InputError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as problem:
        wrong.append(describe_error(problem))
    if wrong:
        yield Check(SECTION, name, FAILED, "; ".join(wrong), methods=tuple(methods))
    elif methods:
        detail = f"{len(methods)} methods, largest difference {worst * RTOL:.0e}, as rounding allows"
        yield Check(SECTION, name, PASSED, detail, methods=tuple(methods))
    elif not refused:
        status = FAILED if are_built_in else NOT_CHECKED
        yield Check(SECTION, name, status, "not run: the law concerns no method for these rows")
    if refused:
        reasons = dict.fromkeys(refused.values())
        names = {reason: [key.partition(":")[2] for key in refused if refused[key] == reason] for reason in reasons}
        detail = "; ".join(f"{', '.join(names[reason])}: {reason}" for reason in reasons)
        title = f"{name}, the other methods" if methods or wrong else name
        yield Check(SECTION, title, NOT_CHECKED, f"not run: {detail}", methods=tuple(refused))


def _reason(values: Outcome, expected: Outcome) -> str:
    """Return why neither of two outcomes has numbers that can be compared; empty if one has."""
    if isinstance(values, str) and isinstance(expected, str):
        return expected
    if isinstance(values, str) or isinstance(expected, str):
        return ""
    return "undefined for these rows" if expected and np.isnan([*values, *expected]).all() else ""


def _shown(outcome: Outcome) -> str:
    return f"refused ({outcome})" if isinstance(outcome, str) else ", ".join(f"{value:.12g}" for value in outcome[:3])


def _measured(preds: Any, name: str, **settings: Any) -> Outcome:
    """Return the value of an estimate, or why the estimator does not accept such rows."""
    try:
        return [to.measure(preds, name, interval=None, **settings).value]
    except InputError as problem:
        return str(problem)


def _measured_tally(tally: Any, name: str) -> Outcome:
    return _measured(tally, name, **TALLIED[name])


def _tested(preds: Predictions, name: str) -> Outcome:
    try:
        verdict = to.test(preds, name, null="asymptotic", progress=False)
    except InputError as problem:
        return str(problem)
    return [verdict.statistic, verdict.pvalue]


def _recalibrated(preds: Predictions, name: str, points: Array) -> Outcome:
    try:
        return [float(q) for q in to.fit(preds, name).predict_proba(points).ravel()]
    except InputError as problem:
        return str(problem)


def _pairs(
    family: str, names: Sequence[str], first: Callable[[str], Outcome], second: Callable[[str], Outcome]
) -> Iterator[Comparison]:
    """Yield both outcomes of each method."""
    for name in names:
        yield family, name, second(name), first(name)


def _not_run(family: str, names: Sequence[str], reason: str) -> Iterator[Comparison]:
    """Yield the reason for each method."""
    for name in names:
        yield family, name, reason, reason


def _permuted_rows(preds: Predictions) -> Iterator[Comparison]:
    permuted = preds[np.random.default_rng(0).permutation(preds.n)]
    yield from _pairs("estimators", ESTIMATORS, lambda n: _measured(preds, n), lambda n: _measured(permuted, n))
    if preds.votes is None:
        yield from _pairs("tests", TESTS, lambda n: _tested(preds, n), lambda n: _tested(permuted, n))
    else:
        yield from _not_run("tests", TESTS, "a test draws one of the votes of each row, in the order of the rows")
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
        reason = "the rows are not of classes" if preds.weight is None else "the rows have weights"
        yield from _not_run("estimators", COPIES, reason)
        return
    weight = np.where(np.arange(preds.n) % 3 == 0, 2.0, 1.0)
    copies = preds[np.repeat(np.arange(preds.n), weight.astype(int))]
    outcomes = preds.votes if preds.y is None else preds.y
    weighted = Predictions(outcomes, preds.p, classes=list(preds.classes), weight=weight)
    yield from _pairs("estimators", COPIES, lambda n: _measured(copies, n), lambda n: _measured(weighted, n))


def _merged_tallies(preds: Predictions) -> Iterator[Comparison]:
    if preds.cluster is not None or preds.n < 3:
        reason = "there are fewer than 3 rows" if preds.cluster is None else "a tally does not keep clusters"
        yield from _not_run("estimators", list(TALLIED), reason)
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
        yield from _not_run("estimators", ESTIMATORS, "the rows have no label of a class")
        return
    two_largest = np.partition(preds.P, -2, axis=1)[:, -2:]
    is_clear = two_largest[:, 0] < two_largest[:, 1]
    if not is_clear.any():
        yield from _not_run("estimators", ESTIMATORS, "the largest probabilities of every row are equal")
        return
    preds = preds[is_clear]
    names = [f"renamed {number:04d}" for number in range(preds.k)]
    labels = preds.k - 1 - np.asarray(preds.y)
    renamed = Predictions(labels, preds.P[:, ::-1], classes=names, weight=preds.weight)
    # Bins of two classes are closed on the right, and their mirror images are not.
    chosen = SCORES if preds.k == 2 else [name for name in ESTIMATORS if name != "calibration_in_the_large"]
    yield from _pairs("estimators", chosen, lambda n: _measured(preds, n), lambda n: _measured(renamed, n))
