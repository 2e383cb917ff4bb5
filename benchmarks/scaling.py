"""Does each estimator and test cost what its docstring says? Times at growing n, and the exponent fitted to them."""

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

STEADY = 10_000  # rows: below, what a call costs at all hides how it grows
CLOSE = 0.25  # a logarithm, or a cache that is left, looks like as much of an exponent


def show(max_rows: int, methods: Sequence[str] | None, patience: float) -> None:
    """Print the table: two classes, the bare value of an estimator, all draws of a test, least of three runs."""
    sizes = [10**k for k in range(3, 9) if 10**k <= max_rows]
    head = " ".join(f"{n:>9,}" for n in sizes)
    print(f"{'member':14} {'stated':24} {'exponent':>8} {'stated':>6}    {head}")
    for registry in (ESTIMATORS, TESTS):
        for name in registry.names():
            if not methods or name in methods:
                _line(registry, name, sizes, patience)


def _line(registry: Registry, name: str, sizes: Sequence[int], patience: float) -> None:
    times: dict[int, float] = {}
    refused = ""
    try:
        seconds(registry, name, 200, 0.0)  # compiled before it is timed
        for n in sizes:
            times[n] = seconds(registry, name, n, patience)
            if times[n] > patience:
                break
    except InputError as refusal:
        refused = f"  {refusal.code} {refusal.problem}"
    slope = exponent(times)
    cost_text, power = stated(registry.load(name))
    shown = " ".join(f"{times[n]:9.2g}" if n in times else f"{'–':>9}" for n in sizes)
    slope_text = "" if slope is None else f"{slope:.2f}"
    promised = "" if power is None else f"{power:g}"
    flag = "!" if slope is not None and power is not None and slope > power + CLOSE else " "
    print(f"{name:14} {cost_text:24.24} {slope_text:>8} {promised:>6} {flag}  {shown}{refused}", flush=True)


def exponent(times: Mapping[int, float]) -> float | None:
    """The slope of log time over log n, where there are enough rows for growth to show; None with fewer than two."""
    large = [n for n in times if n >= STEADY] or list(times)
    if len(large) < 2:
        return None
    return float(np.polyfit(np.log(large), np.log([times[n] for n in large]), 1)[0])


def stated(method: type) -> tuple[str, float | None]:
    """The cost in the docstring, and the exponent of n in it; a logarithm counts as no power."""
    cost = re.compile(r"Cost:?\s*(?:\S+\s+)*?(O\([^)]*(?:\([^)]*\)[^)]*)*\))")
    # "As for ECE" stands in the docstring of a class that inherits.
    match = next((hit for base in method.__mro__ if (hit := cost.search(base.__doc__ or ""))), None)
    if not match:
        return "?", None
    cost_text = " ".join(match[1].split())
    if "n²" in cost_text or "n^2" in cost_text:
        return cost_text, 2.0
    return cost_text, 1.0 if re.search(r"\bn", cost_text) else 0.0


def seconds(registry: Registry, name: str, n: int, patience: float) -> float:
    """The least of three evaluations, of one that takes longer than we wait."""
    method = registry.make(name, {})
    arrays = rows(n, votes=getattr(method, "redraws", "") == "votes")
    fastest = np.inf
    for _ in range(3):
        preds = Predictions(*arrays)  # anew, so that nothing is kept from the last time
        begun = time.perf_counter()
        answer(method, preds)
        fastest = min(fastest, time.perf_counter() - begun)
        if fastest > patience:
            break
    return fastest


def answer(method: Estimator | HypothesisTest, preds: Predictions) -> None:
    """What is timed: lens and value of an estimator, or a test's verdict with all its draws."""
    if isinstance(method, HypothesisTest):
        method(preds, [resolve_lens(preds, None, getattr(method, "statistic", None))], np.random.default_rng(0))
        return
    for view in resolve_lens(preds, None, method).views(preds):
        method.value(view)


@cache
def rows(n: int, *, votes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and probabilities of a mildly distorted model; votes of nine people where they are asked for."""
    rng = np.random.default_rng(n)
    x = rng.normal(0, 1.3, n)
    p, r = 1 / (1 + np.exp(-1.3 * x)), 1 / (1 + np.exp(-x))
    if votes:
        positive_votes = rng.binomial(9, r)
        return np.stack([9 - positive_votes, positive_votes], axis=1), p
    return (rng.random(n) < r).astype(int), p
