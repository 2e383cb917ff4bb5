"""Audit simulated predictions in memory, and print the time and the memory of each audit as JSON.

`benchmarks.audit` runs this file as a process of its own. The kernels are compiled by an audit of few rows.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

import trueodds as to


def simulate_predictions(rows: int, classes: int, seed: int = 0) -> to.Predictions:
    """Return predictions of a model whose probabilities are too extreme, with labels drawn at temperature 1.25."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.standard_normal((rows, classes))
    probabilities, true_probabilities = np.exp(logits), np.exp(0.8 * logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    cumulative = true_probabilities.cumsum(axis=1)
    labels = (cumulative > rng.random((rows, 1)) * cumulative[:, -1:]).argmax(axis=1)
    return to.Predictions(labels, probabilities)


def peak_memory() -> float:
    """Return the largest resident memory since the last reset, in MB; NaN on systems other than Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return next(
        int(line.split()[1]) / 1e3
        for line in status.read_text(encoding="utf-8").splitlines()
        if line.startswith("VmHWM")
    )


def reset_peak_memory() -> None:
    """Make the current resident memory the largest one."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def main(rows: int, classes: int, repeats: int) -> None:
    """Print a list with an object per audit: seconds of `wall` and `cpu` time, and MB of `added` memory."""
    to.audit(simulate_predictions(max(3000, 3 * classes), classes), progress=False)
    predictions = simulate_predictions(rows, classes)
    audits = []
    for _ in range(repeats):
        reset_peak_memory()
        memory, wall, cpu = peak_memory(), time.perf_counter(), time.process_time()
        to.audit(predictions, progress=False)
        audits.append(
            {
                "wall": time.perf_counter() - wall,
                "cpu": time.process_time() - cpu,
                "added": peak_memory() - memory,
            }
        )
    print(json.dumps(audits))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
