"""Sum a batch of tensors into cells by operations of torch, on whatever device the batch is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, NOTED_SUM_DEVIATION, SUM_TOLERANCE_OF_DTYPE
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS
from trueodds.tallies.block_sums import report_bin_of_cells
from trueodds.torch.tensor_layout import DTYPES, TensorLayout

VALUES_PER_CHUNK = 2**24  # values of the matrix that is multiplied for the null covariance
MAX_WEIGHT = 1e30  # beyond, weights are checked on the host, which raises an error


class Batch(NamedTuple):
    """A batch in float64 on its device."""

    P: torch.Tensor  # (n, K) probabilities
    y: torch.Tensor  # (n,) int64 labels, or (n, K) votes or labels of 0 and 1
    w: torch.Tensor  # (n,) weights
    log_observed: torch.Tensor | None  # (n,) log-probability of the observed class, if the scores are logits
    n_zeros: int  # number of probabilities that are exactly 0


def can_sum(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> bool:
    """Whether a batch has labels of classes and valid values, so that it needs no further check on the host.

    The check is one transfer of a single value from the device.
    """
    n, k = len(scores), layout.k
    has_labels = layout.kind == "classes" and target.ndim == 1 and not target.dtype.is_floating_point
    if not has_labels or len(target) != n or n == 0 or not scores.dtype.is_floating_point:
        return False
    labels = target.to(torch.int64)
    valid = (labels.amin() >= 0) & (labels.amax() < k)
    values = scores.double()
    if layout.logits:
        valid &= torch.isfinite(values).all() & ((values.amin() < 0) | (values.amax() > 1))
    else:
        name = str(scores.dtype).removeprefix("torch.")
        valid &= (values.amin() >= 0) & (values.amax() <= 1)
        if values.ndim == 2:
            deviation = (values.sum(dim=1) - 1).abs().amax()
            valid &= deviation <= SUM_TOLERANCE_OF_DTYPE.get(name, DEFAULT_SUM_TOLERANCE)
    if weight is not None:
        if weight.shape != (n,):
            return False
        valid &= (weight.amin() > 0) & (weight.double().amax() < MAX_WEIGHT) & (weight.double().amin() > 1 / MAX_WEIGHT)
    return bool(valid)


def add_batch(
    layout: TensorLayout,
    state: Mapping[str, torch.Tensor],
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
) -> None:
    """Add a batch for which `can_sum` holds to the tensors of `state`, on their device."""
    batch = _make_batch(layout, scores, target, weight)
    n, device = len(batch.P), scores.device
    edges = torch.as_tensor(CELL_EDGES[1:-1].copy(), device=device)
    n_ties = 0
    for view, p, outcome in _views(layout, batch):
        cells = torch.bucketize(p, edges) + view * N_CELLS  # right-closed
        state["cell_counts"].index_add_(0, cells, torch.ones_like(cells))
        state["cell_sums"].index_add_(0, cells, _cell_terms(layout, p, outcome, batch.w))
    if layout.has_null_covariance:
        _add_null_covariance(layout, state["null_covariance"], batch, edges)
    if layout.all_lenses:
        state["score_sums"].add_(_score_sums(layout, batch))
    if layout.ranks:
        n_ties = int(((batch.P == batch.P.amax(dim=1, keepdim=True)).sum(dim=1) > 1).sum())
    state["total_weight"].add_(batch.w.sum())
    dtype = "float64" if layout.logits else str(scores.dtype).removeprefix("torch.").replace("bfloat16", "float32")
    state["row_counts"].add_(
        torch.tensor([n, *_special_counts(layout, batch, scores, n_ties), *(n * (dtype == name) for name in DTYPES)],
                     device=device)
    )  # fmt: skip
    if layout.all_lenses and not layout.logits:
        deviation = _sum_deviation(layout, batch.P, scores)
        state["maxima"][1] = torch.maximum(state["maxima"][1], deviation.amax())


def _make_batch(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> Batch:
    """Convert a batch to float64."""
    values, y = scores.double(), target.to(torch.int64)
    w = torch.ones(len(values), dtype=torch.float64, device=values.device) if weight is None else weight.double()
    if values.ndim == 1:  # of the second of two classes
        values = torch.stack([torch.zeros_like(values), values] if layout.logits else [1 - values, values], dim=1)
    if not layout.logits:
        return Batch(values, y, w, None, int((values == 0).sum()) if layout.all_lenses else 0)
    log_observed = torch.log_softmax(values, dim=1).gather(1, y[:, None])[:, 0]
    return Batch(torch.softmax(values, dim=1), y, w, log_observed, 0)  # finite logits give no exact zeros


def _views(layout: TensorLayout, batch: Batch) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield number, probabilities (n,) and outcomes (n,) of each stored view."""
    remaining = batch.P.clone() if layout.ranks > 1 else batch.P
    columns = torch.arange(layout.k, device=batch.P.device)
    for rank in range(layout.ranks):
        top = remaining.amax(dim=1, keepdim=True)
        top_class = torch.where(remaining == top, columns, layout.k).amin(dim=1)  # the lowest one if tied
        yield rank, top[:, 0], (top_class == batch.y).double()
        if rank + 1 < layout.ranks:
            remaining.scatter_(1, top_class[:, None], -1.0)
    for position, c in enumerate(layout.class_range):
        yield layout.ranks + position, batch.P[:, c].contiguous(), (batch.y == c).double()


def _cell_terms(layout: TensorLayout, p: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Contribution of each row to the sums of its cell, (n, sums)."""
    if not layout.weighted:
        return torch.stack([p, p * p, y, y * p], dim=1)
    terms = [w, w * p, w * y, w * w, w * p * p, w * p * y, w * y * y, w * w * p * (1 - p), w * w * (y - p) ** 2]
    return torch.stack(terms, dim=1)


def _add_null_covariance(layout: TensorLayout, null: torch.Tensor, batch: Batch, edges: torch.Tensor) -> None:
    """Add Σ w²(δ_kl p_k − p_k p_l) between the report cells of two classes, upper triangle."""
    k, bins = layout.k, layout.bins
    bin_of_cell = torch.as_tensor(report_bin_of_cells(bins).astype("int64"), device=batch.P.device)
    offsets = torch.arange(k, device=batch.P.device) * bins
    rows_per_chunk = max(1, VALUES_PER_CHUNK // (k * bins))
    diagonal = torch.zeros(k * bins, dtype=torch.float64, device=batch.P.device)
    for start in range(0, len(batch.P), rows_per_chunk):
        P, w = batch.P[start : start + rows_per_chunk], batch.w[start : start + rows_per_chunk, None]
        columns = bin_of_cell[torch.bucketize(P.contiguous(), edges)] + offsets
        placed = torch.zeros(len(P), k * bins, dtype=torch.float64, device=P.device).scatter_(1, columns, w * P)
        products = placed.T @ placed
        diagonal.index_add_(0, columns.flatten(), (w * w * P).flatten())
        null.sub_(torch.triu(products))
    null.diagonal().add_(diagonal)


def _score_sums(layout: TensorLayout, batch: Batch) -> torch.Tensor:
    """Sums of the Brier score and of the log loss, (2, 7)."""
    observed = batch.P.gather(1, batch.y[:, None])[:, 0]
    if layout.k == 2:
        brier = (batch.P[:, 1] - batch.y) ** 2
    else:
        brier = (batch.P * batch.P).sum(dim=1) - 2 * observed + 1
    loss = -torch.log(observed) if batch.log_observed is None else -batch.log_observed
    rows = []
    for score in (brier, loss):
        infinite = torch.isinf(score)
        s, w = torch.where(infinite, 0.0, score), torch.where(infinite, 0.0, batch.w)
        terms = (w, w * w, w * s, w * w * s, w * w * s * s, infinite.double(), batch.w - w)
        rows.append(torch.stack([term.sum() for term in terms]))
    return torch.stack(rows)


def _special_counts(layout: TensorLayout, batch: Batch, scores: torch.Tensor, n_ties: int) -> list[int]:
    """Counts of special rows in the order of ROW_COUNTS."""
    if not layout.all_lenses:
        return [0, 0, 0, 0, n_ties, 0, 0]
    n_ones = 0 if layout.logits else int((batch.P == 1).sum())
    n_inexact = 0 if layout.logits else int((_sum_deviation(layout, batch.P, scores) > 0).sum())
    n_true_zeros = 0 if layout.logits else int((batch.P.gather(1, batch.y[:, None]) == 0).sum())
    return [batch.n_zeros, n_ones, 0, n_inexact, n_ties, n_true_zeros, 0]


def _sum_deviation(layout: TensorLayout, P: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Distance of each row sum from 1, (n,); 0 where it is rounding of the dtype."""
    if scores.ndim == 1:
        return torch.zeros_like(P[:, 0])
    eps = torch.finfo(torch.float32 if scores.dtype == torch.bfloat16 else scores.dtype).eps
    deviation = (P.sum(dim=1) - 1).abs()
    return torch.where(deviation > max(layout.k * eps, NOTED_SUM_DEVIATION), deviation, 0.0)
