"""Update and compute of the calibration error of tensors, beside the metric of torchmetrics, in alternating runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
import torchmetrics

from trueodds.torch import CalibrationError, TorchTally

CLASSES = 10


def figures(rows: int, repeats: int) -> Iterable[tuple[str, str]]:
    """Shortest times, their ratio, and the memory of the state, for several dtypes and sizes of batches."""
    ours, peer = CalibrationError(CLASSES), torchmetrics.classification.MulticlassCalibrationError(CLASSES)
    generator = torch.Generator().manual_seed(0)
    exact = torch.softmax(2 * torch.randn(rows, CLASSES, generator=generator), 1)
    y = torch.multinomial(exact, 1, generator=generator)[:, 0]
    threads = torch.get_num_threads()
    yield "threads of torch", str(threads)
    for dtype in (torch.float32, torch.float16):
        P = exact.to(dtype)
        for size in (rows, 8192, 1024):
            batches = list(zip(P.split(size), y.split(size), strict=True))
            times, values = [float("inf")] * 2, [0.0] * 2  # of both metrics
            for _ in range(repeats):
                for i, metric in enumerate((ours, peer)):
                    metric.reset()
                    start = time.perf_counter()
                    values[i] = compute_value(metric, batches)
                    times[i] = min(times[i], time.perf_counter() - start)
            name = f"{str(dtype).removeprefix('torch.')} {rows:,} × {CLASSES}, batches of {size:,}"
            yield name, f"{1e3 * times[0]:.1f} ms"
            yield "  torchmetrics", f"{1e3 * times[1]:.1f} ms ({times[1] / times[0]:.1f} times as long)"
            yield "  values", f"{values[0]:.6f} and {values[1]:.6f}"
    tally = TorchTally(CLASSES)
    start = time.perf_counter()
    tally.update(exact, y)
    yield f"all lenses {rows:,} × {CLASSES}", f"{1e3 * (time.perf_counter() - start):.1f} ms"
    for name, metric in (("state", ours), ("  torchmetrics", peer)):
        metric.reset()
        before = state_bytes(metric)
        for batch in zip(exact.split(8192), y.split(8192), strict=True):
            metric.update(*batch)
        yield name, f"{before / 1e3:,.0f} kB, after {rows:,} rows {state_bytes(metric) / 1e3:,.0f} kB"


def compute_value(metric: Any, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Update a metric with all batches and return its value."""
    for P, y in batches:
        metric.update(P, y)
    return float(metric.compute())


def state_bytes(metric: Any) -> int:
    """Bytes of the tensors of the state of a metric."""
    tensors = [getattr(metric, name) for name in metric._defaults]
    flat = [tensor for value in tensors for tensor in (value if isinstance(value, list) else [value])]
    return sum(tensor.numel() * tensor.element_size() for tensor in flat)
