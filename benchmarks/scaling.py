"""Does each estimator cost what its docstring says? Times at growing n, and the exponent fitted to them.

Run: python benchmarks/scaling.py [--most 1000000] [--member NAME]. Two classes; seconds are the least of three runs.
"""

from __future__ import annotations

import argparse
import re
import time

import numpy as np

from trueodds.ask import lens_for
from trueodds.core.errors import InputError
from trueodds.estimators import ESTIMATORS
from trueodds.problem.predictions import Predictions

PATIENCE = 2.0  # seconds: a member that takes longer is not asked for more rows


def stated(member: type) -> tuple[str, float | None]:
    """The cost in the docstring, and the exponent of n in it; a logarithm counts as no power."""
    cost = re.compile(r"Cost:?\s*(?:\S+\s+)*?(O\([^)]*(?:\([^)]*\)[^)]*)*\))")
    # "As for ECE" stands in the docstring of a class that inherits.
    found = next((each for base in member.__mro__ if (each := cost.search(base.__doc__ or ""))), None)
    if not found:
        return "?", None
    said = found[1]
    if "n²" in said or "n^2" in said:
        return said, 2.0
    return said, 1.0 if re.search(r"\bn", said) else 0.0


def rows(n: int, votes: bool) -> Predictions:
    """A mildly distorted model; votes of nine people where they are asked for."""
    rng = np.random.default_rng(n)
    x = rng.normal(0, 1.3, n)
    p, r = 1 / (1 + np.exp(-1.3 * x)), 1 / (1 + np.exp(-x))
    if votes:
        seen = rng.binomial(9, r)
        return Predictions(np.stack([9 - seen, seen], axis=1), p)
    return Predictions((rng.random(n) < r).astype(int), p)


def seconds(name: str, n: int) -> float:
    """The least of three evaluations of the value alone."""
    estimator = ESTIMATORS.make(name, {})
    preds = rows(n, estimator.redraws == "votes")
    views = lens_for(preds, None, estimator).views(preds)
    best = np.inf
    for _ in range(3):
        begun = time.perf_counter()
        for view in views:
            estimator.value(view)
        best = min(best, time.perf_counter() - begun)
        if best > PATIENCE:
            break
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--member", action="append")
    asked = parser.parse_args()
    sizes = [10**k for k in range(3, 9) if 10**k <= asked.most]
    print(f"{'estimator':14} {'stated':24} {'exponent':>8} {'stated':>6}  " + " ".join(f"{n:>9,}" for n in sizes))
    for name in asked.member or ESTIMATORS.names():
        times: dict[int, float] = {}
        seconds(name, 200)  # compiled before it is timed
        for n in sizes:
            try:
                times[n] = seconds(name, n)
            except InputError as refusal:
                print(f"{name:14} {n:,} rows: {refusal.code} {refusal.problem}")
                break
            if times[n] > PATIENCE:
                break
        large = [n for n in times if n >= 10_000] or list(times)
        slope = float("nan")
        if len(large) > 1:
            slope = float(np.polyfit(np.log(large), np.log([times[n] for n in large]), 1)[0])
        said, power = stated(ESTIMATORS.load(name))
        shown = " ".join(f"{times[n]:9.2g}" if n in times else f"{'–':>9}" for n in sizes)
        print(f"{name:14} {said:24} {slope:8.2f} {'' if power is None else f'{power:g}':>6}  {shown}", flush=True)


if __name__ == "__main__":
    main()
