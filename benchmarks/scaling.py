"""Run time of each estimator and test as n grows, and the fitted exponent compared with the cost in the docstring."""

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

STEADY = 10_000  # rows: below, the fixed cost of a call hides the growth
CLOSE = 0.25  # a logarithm or a cache effect can add this much to an exponent
WIDTH = max(len(name) for registry in (ESTIMATORS, TESTS) for name in registry.names())


def show(max_rows: int, methods: Sequence[str] | None, patience: float) -> None:
    """Print the table: two classes, estimate without interval, test with all draws, minimum of three runs."""
    sizes = [10**k for k in range(3, 9) if 10**k <= max_rows]
    head = " ".join(f"{n:>9,}" for n in sizes)
    print(f"{'method':{WIDTH}} {'cost':24} {'measured':>8} {'stated':>6}    {head}")
    for registry in (ESTIMATORS, TESTS):
        for name in registry.names():
            if not methods or name in methods:
                _line(registry, name, sizes, patience)


def _line(registry: Registry, name: str, sizes: Sequence[int], patience: float) -> None:
    times: dict[int, float] = {}
    refused = ""
    try:
        seconds(registry, name, 200, 0.0)  # compile before timing
        for n in sizes:
            times[n] = seconds(registry, name, n, patience)
            if times[n] > patience:
                break
    except InputError as refusal:
        refused = f"  {refusal.code} {refusal.problem}"
    slope = exponent(times)
    cost_text, power = stated(registry.load(name))
    times_text = " ".join(f"{times[n]:9.2g}" if n in times else f"{'–':>9}" for n in sizes)
    slope_text = "" if slope is None else f"{slope:.2f}"
    promised = "" if power is None else f"{power:g}"
    flag = "!" if slope is not None and power is not None and slope > power + CLOSE else " "
    print(f"{name:{WIDTH}} {cost_text:24.24} {slope_text:>8} {promised:>6} {flag}  {times_text}{refused}", flush=True)


def exponent(times: Mapping[int, float]) -> float | None:
    """Slope of log time against log n, from `STEADY` rows on; None with fewer than two sizes."""
    large = [n for n in times if n >= STEADY] or list(times)
    if len(large) < 2:
        return None
    return float(np.polyfit(np.log(large), np.log([times[n] for n in large]), 1)[0])


def stated(method: type) -> tuple[str, float | None]:
    """The cost stated in the docstring, and its exponent of n, ignoring logarithms; a dash if it is not a formula."""
    cost = re.compile(r"Cost:?\s*(?:\S+\s+)*?(O\([^)]*(?:\([^)]*\)[^)]*)*\))")
    # A subclass may refer to the cost of its parent.
    match = next((hit for base in method.__mro__ if (hit := cost.search(base.__doc__ or ""))), None)
    if not match:
        return "–", None
    cost_text = " ".join(match[1].split())
    if "n²" in cost_text or "n^2" in cost_text:
        return cost_text, 2.0
    return cost_text, 1.0 if re.search(r"\bn", cost_text) else 0.0


def seconds(registry: Registry, name: str, n: int, patience: float) -> float:
    """Minimum time of three evaluations, or of one if it takes longer than `patience`."""
    method = registry.make(name, {})
    arrays = rows(n, votes=getattr(method, "redraws", "") == "votes")
    fastest = np.inf
    for _ in range(3):
        preds = Predictions(*arrays)  # a new object, without cached results
        begun = time.perf_counter()
        answer(method, preds)
        fastest = min(fastest, time.perf_counter() - begun)
        if fastest > patience:
            break
    return fastest


def answer(method: Estimator | HypothesisTest, preds: Predictions) -> None:
    """The timed call: lens and value of an estimator, or the verdict of a test with all draws."""
    if isinstance(method, HypothesisTest):
        method(preds, [resolve_lens(preds, None, getattr(method, "statistic", None))], np.random.default_rng(0))
        return
    for view in resolve_lens(preds, None, method).views(preds):
        method.value(view)


@cache
def rows(n: int, *, votes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and probabilities of a mildly distorted model; with `votes`, votes of nine annotators."""
    rng = np.random.default_rng(n)
    x = rng.normal(0, 1.3, n)
    p, r = 1 / (1 + np.exp(-1.3 * x)), 1 / (1 + np.exp(-x))
    if votes:
        positive_votes = rng.binomial(9, r)
        return np.stack([9 - positive_votes, positive_votes], axis=1), p
    return (rng.random(n) < r).astype(int), p
