"""Time to draw every diagram, with 10⁴ rows in memory and with a tally of 10⁷ rows."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS

ROWS, TALLIED, BATCHES = 10_000, 10_000_000, 10
JOINT = {"simplex": 3, "tetrahedron": 4}  # diagrams of the whole vector, and how many classes they show
SEVERAL = ("comparison", "murphy")  # drawn with two models


def show(repeats: int) -> None:
    """Print the time to compute and to draw each diagram, the minimum of several repeats."""
    print(f"{'diagram':22}{'rows':>12}{'made':>9}{'drawn':>9}{'both':>9}")
    tallies: dict[tuple[int, float], to.Tally] = {}
    for name in DIAGRAMS.names():
        for rows, data in _data(name, tallies):
            try:
                compute_time, draw_time = _fastest(name, data, repeats)
            except InputError as refused:
                print(f"{name:22}{rows:12,}  {refused.code}", flush=True)
                continue
            print(
                f"{name:22}{rows:12,}{compute_time:8.2f}s{draw_time:8.2f}s{compute_time + draw_time:8.2f}s", flush=True
            )


def _data(name: str, tallies: dict[Any, Any]) -> Iterator[tuple[int, Any]]:
    k = JOINT.get(name, 10)

    def tally(slope: float) -> Any:
        grid = 10 if name in JOINT else None
        if (k, slope, grid) not in tallies:
            parts = (to.tally(_rows(TALLIED // BATCHES, k, i, slope), grid=grid) for i in range(BATCHES))
            total = next(parts)
            for part in parts:
                total = total + part
            tallies[k, slope, grid] = total
        return tallies[k, slope, grid]

    for rows, of in ((ROWS, lambda slope: _rows(ROWS, k, 0, slope)), (TALLIED, tally)):
        if name == "training":
            yield rows, {str(epoch): of(1 + epoch / 5) for epoch in range(1, 6)}
        elif name in SEVERAL:
            yield rows, {"a": of(1.0), "b": of(1.5)}
        else:
            yield rows, of(1.5)


def _rows(n: int, k: int, seed: int, slope: float) -> to.Predictions:
    """Labels drawn from vectors; the model multiplies their logits by `slope`."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal((n, k))
    labels = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    z *= slope
    z -= z.max(axis=1, keepdims=True)
    P = np.exp(z)
    return to.Predictions(labels, P / P.sum(axis=1, keepdims=True))


def _fastest(name: str, data: Any, repeats: int) -> tuple[float, float]:
    def timed(call: Callable[[], Any]) -> tuple[float, Any]:
        begun = time.perf_counter()
        result = call()
        return time.perf_counter() - begun, result

    timings = []
    for _ in range(repeats + 1):  # the first one compiles and imports
        compute_time, diagram = timed(lambda: to.draw(data, name))
        draw_time, _ = timed(lambda diagram=diagram: diagram.draw().savefig(io.BytesIO(), dpi=100))
        timings.append((compute_time, draw_time))
    return min(compute_time for compute_time, _ in timings), min(draw_time for _, draw_time in timings)
