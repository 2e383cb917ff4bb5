"""Benchmark of the growth of run time with n: the fitted exponent of each estimator and test, and the stated one.

Each method states its cost in its docstring, such as "Cost: O(n log n)". The predictions have two classes; an estimate
is timed without an interval, and a test with all its draws.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from trueodds.api.arguments import resolve_lens
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest

MIN_FITTED_ROWS = 10_000  # with fewer rows, the fixed cost of a call hides the growth
EXPONENT_TOLERANCE = 0.25  # a logarithm or a cache effect can add this much to an exponent
NAME_WIDTH = max(len(name) for registry in (ESTIMATORS, TESTS) for name in registry.names())
# "Cost: O(…)", also with words before the formula; the formula may contain one pair of parentheses.
_COST_PATTERN = re.compile(r"Cost:?\s*(?:\S+\s+)*?(O\([^)]*(?:\([^)]*\)[^)]*)*\))")


def print_scaling(max_rows: int, methods: Sequence[str] | None, max_seconds: float) -> None:
    """Print a row per method, of all or of those named; a method slower than `max_seconds` gets no more rows."""
    sizes = [10**k for k in range(3, 9) if 10**k <= max_rows]
    size_headers = " ".join(f"{n:>9,}" for n in sizes)
    print(f"{'method':{NAME_WIDTH}} {'cost':24} {'measured':>8} {'stated':>6}    {size_headers}")
    for registry in (ESTIMATORS, TESTS):
        for name in registry.names():
            if not methods or name in methods:
                print_method_row(registry, name, sizes, max_seconds)


def print_method_row(registry: Registry, name: str, sizes: Sequence[int], max_seconds: float) -> None:
    """Print stated cost, exponents and times of a method; ! marks an exponent that is higher than stated."""
    times: dict[int, float] = {}
    error_text = ""
    try:
        measure_seconds(registry, name, 200, 0.0)  # compile before timing
        for n in sizes:
            times[n] = measure_seconds(registry, name, n, max_seconds)
            if times[n] > max_seconds:
                break
    except InputError as problem:
        error_text = f"  {problem.code} {problem.problem}"
    measured_exponent = fit_exponent(times)
    cost_text, stated_exponent = read_stated_cost(registry.load(name))
    measured_text = "" if measured_exponent is None else f"{measured_exponent:.2f}"
    stated_text = "" if stated_exponent is None else f"{stated_exponent:g}"
    is_worse = (
        measured_exponent is not None
        and stated_exponent is not None
        and measured_exponent > stated_exponent + EXPONENT_TOLERANCE
    )
    times_text = " ".join(f"{times[n]:9.2g}" if n in times else f"{'–':>9}" for n in sizes)
    print(
        f"{name:{NAME_WIDTH}} {cost_text:24.24} {measured_text:>8} {stated_text:>6} {'!' if is_worse else ' '} "
        f" {times_text}{error_text}",
        flush=True,
    )


def fit_exponent(times: Mapping[int, float]) -> float | None:
    """Return the slope of log time against log n by least squares; None with fewer than two sizes.

    `times` has seconds by number of rows; sizes below `MIN_FITTED_ROWS` are ignored if there are larger ones.
    """
    sizes = [n for n in times if n >= MIN_FITTED_ROWS] or list(times)
    if len(sizes) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log([times[n] for n in sizes]), 1)[0])


def read_stated_cost(method: type) -> tuple[str, float | None]:
    """Return the cost stated in the docstring and its exponent of n, without logarithms; ("–", None) if there is none.

    A class whose docstring has no formula has the cost of its base class.
    """
    docstrings = (base.__doc__ or "" for base in method.__mro__)
    match = next((match for docstring in docstrings if (match := _COST_PATTERN.search(docstring))), None)
    if match is None:
        return "–", None
    cost_text = " ".join(match[1].split())
    if "n²" in cost_text or "n^2" in cost_text:
        return cost_text, 2.0
    return cost_text, 1.0 if re.search(r"\bn", cost_text) else 0.0


def measure_seconds(registry: Registry, name: str, n: int, max_seconds: float) -> float:
    """Return the minimum time of three evaluations, or that of the first one that takes longer than `max_seconds`."""
    method = registry.make(name, {})
    arrays = simulate_rows(n, votes=getattr(method, "redraws", "") == "votes")
    shortest = np.inf
    for _ in range(3):
        preds = Predictions(*arrays)  # a new object, without cached results
        start = time.perf_counter()
        evaluate_method(method, preds)
        shortest = min(shortest, time.perf_counter() - start)
        if shortest > max_seconds:
            break
    return shortest


def evaluate_method(method: Estimator | HypothesisTest, preds: Predictions) -> None:
    """Make the timed call: lens and value of an estimator, or the verdict of a test."""
    if isinstance(method, HypothesisTest):
        method(preds, [resolve_lens(preds, None, getattr(method, "statistic", None))], np.random.default_rng(0))
        return
    for view in resolve_lens(preds, None, method).views(preds):
        method.value(view)


@cache
def simulate_rows(n: int, *, votes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes and probabilities p (n,) of an overconfident model whose logits are 1.3 times the true ones.

    Outcomes are labels (n,) or, with `votes`, the numbers of votes of nine annotators (n, 2).
    """
    rng = np.random.default_rng(n)
    logit = rng.normal(0, 1.3, n)
    p, true_prob = 1 / (1 + np.exp(-1.3 * logit)), 1 / (1 + np.exp(-logit))
    if votes:
        positive_votes = rng.binomial(9, true_prob)
        return np.stack([9 - positive_votes, positive_votes], axis=1), p
    return (rng.random(n) < true_prob).astype(int), p
