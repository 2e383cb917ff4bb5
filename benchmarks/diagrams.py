"""Benchmark of the diagrams: time to compute and to draw each, of 10⁴ rows in memory and of a tally of 10⁷ rows."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.diagrams import PREDICTION_DIAGRAMS

N_ROWS, N_TALLIED_ROWS, N_BATCHES = 10_000, 10_000_000, 10
N_CLASSES_SHOWN = {"simplex": 3, "tetrahedron": 4}  # of diagrams of the whole probability vector; 10 for the others
DIAGRAMS_OF_TWO_MODELS = ("comparison", "murphy")


def print_drawing_times(repeats: int) -> None:
    """Print the minimum time of several repeats for each diagram, or the code of the error of one without tallies."""
    print(f"{'diagram':22}{'rows':>12}{'made':>9}{'drawn':>9}{'both':>9}")
    for name in PREDICTION_DIAGRAMS:
        for n_rows, data in simulate_data(name):
            try:
                compute_time, draw_time = measure_diagram(name, data, repeats)
            except InputError as refused:
                print(f"{name:22}{n_rows:12,}  {refused.code}", flush=True)
                continue
            print(
                f"{name:22}{n_rows:12,}{compute_time:8.2f}s{draw_time:8.2f}s{compute_time + draw_time:8.2f}s",
                flush=True,
            )


def simulate_data(name: str) -> Iterator[tuple[int, Any]]:
    """Yield the number of rows and the data of a diagram: one model, or several by name; first rows, then tallies."""
    k = N_CLASSES_SHOWN.get(name, 10)
    grid = 10 if name in N_CLASSES_SHOWN else None

    def simulate_model(slope: float, n_rows: int) -> Any:
        """Return the rows of a model if there are few, else their tally."""
        return simulate_rows(n_rows, k, 0, slope) if n_rows == N_ROWS else simulate_tally(k, slope, grid)

    for n_rows in (N_ROWS, N_TALLIED_ROWS):
        if name == "training":
            yield n_rows, {str(epoch): simulate_model(1 + epoch / 5, n_rows) for epoch in range(1, 6)}
        elif name in DIAGRAMS_OF_TWO_MODELS:
            yield n_rows, {"a": simulate_model(1.0, n_rows), "b": simulate_model(1.5, n_rows)}
        else:
            yield n_rows, simulate_model(1.5, n_rows)


@cache
def simulate_tally(k: int, slope: float, grid: int | None) -> to.Tally:
    """Return the sum of the tallies of batches; `grid` keeps whole probability vectors on a grid."""
    batches = (simulate_rows(N_TALLIED_ROWS // N_BATCHES, k, seed, slope) for seed in range(N_BATCHES))
    total = to.tally(next(batches), grid=grid)
    for batch in batches:
        total = total + to.tally(batch, grid=grid)
    return total


def simulate_rows(n: int, k: int, seed: int, slope: float) -> to.Predictions:
    """Return predictions of k classes by a model that multiplies the true logits by `slope`.

    Labels are drawn with the Gumbel-max trick, and so follow the softmax of the true logits.
    """
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, k))
    labels = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    logits *= slope
    logits -= logits.max(axis=1, keepdims=True)
    P = np.exp(logits)
    return to.Predictions(labels, P / P.sum(axis=1, keepdims=True))


def measure_diagram(name: str, data: Any, repeats: int) -> tuple[float, float]:
    """Return the shortest times in seconds to compute a diagram, and to draw it as a PNG file."""
    compute_times, draw_times = [], []
    for _ in range(repeats + 1):  # the first one compiles and imports
        compute_time, diagram = time_call(lambda: to.draw(data, name))
        draw_time, _ = time_call(lambda diagram=diagram: diagram.draw().savefig(io.BytesIO(), dpi=100))
        compute_times.append(compute_time)
        draw_times.append(draw_time)
    return min(compute_times), min(draw_times)


def time_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall time of a call in seconds, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
