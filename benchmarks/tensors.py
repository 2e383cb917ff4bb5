"""Benchmark of the metric for PyTorch tensors, compared with the metric of torchmetrics, in alternating runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torchmetrics

from trueodds.torch import CalibrationError, TorchTally

N_CLASSES = 10
BATCH_ROWS = 8192

Batch = tuple[torch.Tensor, torch.Tensor]  # probabilities (n, K) and labels (n,)


def measure_metrics(n_rows: int, repeats: int) -> Iterator[tuple[str, str]]:
    """Yield lines (what is measured, result): times for several dtypes and batch sizes, and memory of the state."""
    metric = CalibrationError(N_CLASSES)
    peer_metric = torchmetrics.classification.MulticlassCalibrationError(N_CLASSES)
    generator = torch.Generator().manual_seed(0)
    P = torch.softmax(2 * torch.randn(n_rows, N_CLASSES, generator=generator), 1)
    y = torch.multinomial(P, 1, generator=generator)[:, 0]
    yield "threads of torch", str(torch.get_num_threads())
    for dtype in (torch.float32, torch.float16):
        for batch_rows in (n_rows, BATCH_ROWS, 1024):
            batches = list(zip(P.to(dtype).split(batch_rows), y.split(batch_rows), strict=True))
            (seconds, value), (peer_seconds, peer_value) = time_alternately((metric, peer_metric), batches, repeats)
            dtype_name = str(dtype).removeprefix("torch.")
            yield f"{dtype_name} {n_rows:,} × {N_CLASSES}, batches of {batch_rows:,}", f"{1e3 * seconds:.1f} ms"
            yield "  torchmetrics", f"{1e3 * peer_seconds:.1f} ms ({peer_seconds / seconds:.1f} times as long)"
            yield "  values", f"{value:.6f} and {peer_value:.6f}"
    tally = TorchTally(N_CLASSES)
    start = time.perf_counter()
    tally.update(P, y)
    yield f"all lenses {n_rows:,} × {N_CLASSES}", f"{1e3 * (time.perf_counter() - start):.1f} ms"
    for name, updated_metric in (("state", metric), ("  torchmetrics", peer_metric)):
        updated_metric.reset()
        bytes_before = state_bytes(updated_metric)
        for batch in zip(P.split(BATCH_ROWS), y.split(BATCH_ROWS), strict=True):
            updated_metric.update(*batch)
        bytes_after = state_bytes(updated_metric)
        yield name, f"{bytes_before / 1e3:,.0f} kB, after {n_rows:,} rows {bytes_after / 1e3:,.0f} kB"


def time_alternately(metrics: tuple[Any, Any], batches: list[Batch], repeats: int) -> list[tuple[float, float]]:
    """Return the shortest time in seconds and the value of each metric; the metrics take turns."""
    shortest, values = [float("inf")] * len(metrics), [0.0] * len(metrics)
    for _ in range(repeats):
        for i, metric in enumerate(metrics):
            metric.reset()
            start = time.perf_counter()
            values[i] = compute_value(metric, batches)
            shortest[i] = min(shortest[i], time.perf_counter() - start)
    return list(zip(shortest, values, strict=True))


def compute_value(metric: Any, batches: Iterable[Batch]) -> float:
    """Update a metric with all batches and return its value."""
    for P, y in batches:
        metric.update(P, y)
    return float(metric.compute())


def state_bytes(metric: Any) -> int:
    """Return the number of bytes of the tensors in the state of a metric."""
    states = [getattr(metric, name) for name in metric._defaults]
    tensors = [tensor for state in states for tensor in (state if isinstance(state, list) else [state])]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
