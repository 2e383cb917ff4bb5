"""Add a batch of tensors to the sums of a tally by operations of torch, on the device of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, NOTED_SUM_DEVIATION, SUM_TOLERANCE_OF_DTYPE
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS
from trueodds.tallies.block_sums import report_bin_of_cells
from trueodds.tallies.tally_sums import MAXIMUM_FIELDS
from trueodds.torch.tensor_layout import DTYPES, ROW_COUNTS, SCORE_SUMS, TensorLayout

VALUES_PER_CHUNK = 2**24  # values of the matrix whose products give the null covariance, which limits memory
MAX_WEIGHT = 1e30  # batches with larger weights are checked on the host, which raises an error


class Batch(NamedTuple):
    """A batch in float64 on its device."""

    P: torch.Tensor  # (n, K) probabilities
    y: torch.Tensor  # (n,) int64 labels, or (n, K) votes or labels of 0 and 1
    w: torch.Tensor  # (n,) weights
    log_observed: torch.Tensor | None  # (n,) log-probability of the observed class, if the scores are logits


def can_sum_on_device(
    layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> bool:
    """Return whether a batch has class numbers as labels and valid values, so that its device can sum it.

    Other batches are checked and summed on the host. To save time, the device transfers only the result of the check.
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


def add_batch_on_device(
    layout: TensorLayout,
    state: Mapping[str, torch.Tensor],
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
) -> None:
    """Add a batch to the tensors of `state`, on their device; `can_sum_on_device` must be true for it."""
    batch = _make_batch(layout, scores, target, weight)
    n, device = len(batch.P), scores.device
    edges = torch.as_tensor(CELL_EDGES[1:-1].copy(), device=device)
    # These need most memory, and come first so that the sums are unchanged if there is too little.
    null = _null_covariance(layout, batch, edges) if layout.has_null_covariance else None
    score_sums = _score_sums(layout, batch) if layout.all_lenses else None
    dtype = "float64" if layout.logits else str(scores.dtype).removeprefix("torch.").replace("bfloat16", "float32")
    special = _special_counts(layout, batch, scores)
    rows_of_dtype = [n if name == dtype else 0 for name in DTYPES]
    counts = [n, *(special.get(name, 0) for name in ROW_COUNTS), *rows_of_dtype]
    for view, p, outcome in _views(layout, batch):
        cells = torch.bucketize(p, edges) + view * N_CELLS  # right-closed
        state["cell_counts"].index_add_(0, cells, torch.ones_like(cells))
        state["cell_sums"].index_add_(0, cells, _cell_terms(layout, p, outcome, batch.w))
    if null is not None:
        state["null_covariance"].add_(null)
    if score_sums is not None:
        state["score_sums"].add_(score_sums)
    state["total_weight"].add_(batch.w.sum())
    state["row_counts"].add_(torch.tensor(counts, device=device))
    if layout.all_lenses and not layout.logits:
        worst = state["maxima"][MAXIMUM_FIELDS.index("worst_sum")]
        worst.copy_(torch.maximum(worst, _sum_deviation(layout, batch.P, scores).amax()))


def _make_batch(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> Batch:
    """Convert scores, labels and weights to probabilities, labels and weights in float64."""
    values, y = scores.double(), target.to(torch.int64)
    w = torch.ones(len(values), dtype=torch.float64, device=values.device) if weight is None else weight.double()
    if values.ndim == 1:  # of the second of two classes; the complement is rounded to the dtype, as on the host
        rounded = scores.float() if scores.dtype.itemsize < 4 else scores
        first = torch.zeros_like(values) if layout.logits else (1 - rounded).double()
        values = torch.stack([first, values], dim=1)
    if not layout.logits:
        return Batch(values, y, w, None)
    log_observed = torch.log_softmax(values, dim=1).gather(1, y[:, None])[:, 0]
    return Batch(torch.softmax(values, dim=1), y, w, log_observed)


def _views(layout: TensorLayout, batch: Batch) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield the number of each stored view, its probabilities (n,) and its outcomes (n,): first ranks, then classes."""
    remaining = batch.P.clone() if layout.ranks > 1 else batch.P
    columns = torch.arange(layout.k, device=batch.P.device)
    for rank in range(layout.ranks):
        top = remaining.amax(dim=1, keepdim=True)
        top_class = torch.where(remaining == top, columns, layout.k).amin(dim=1)  # the lowest class if several are tied
        yield rank, top[:, 0], (top_class == batch.y).double()
        if rank + 1 < layout.ranks:
            remaining.scatter_(1, top_class[:, None], -1.0)
    for position, c in enumerate(layout.class_range):
        yield layout.ranks + position, batch.P[:, c].contiguous(), (batch.y == c).double()


def _cell_terms(layout: TensorLayout, p: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the terms that each row adds to the sums of its cell (n, sums), in the order of `layout.sum_names`."""
    if not layout.weighted:
        return torch.stack([p, p * p, y, y * p], dim=1)
    terms = [w, w * p, w * y, w * w, w * p * p, w * p * y, w * y * y, w * w * p * (1 - p), w * w * (y - p) ** 2]
    return torch.stack(terms, dim=1)


def _null_covariance(layout: TensorLayout, batch: Batch, edges: torch.Tensor) -> torch.Tensor:
    """Return the covariance of the residual sums of two report bins under calibration, upper triangle (K·bins, K·bins).

    For bins of the classes k and l it is the sum of w²(δ_kl p_k − p_k p_l) over the rows that lie in both. The sum of
    the products w p_k w p_l is that of a matrix product.
    """
    k, bins = layout.k, layout.bins
    bin_of_cell = torch.as_tensor(report_bin_of_cells(bins).astype("int64"), device=batch.P.device)
    offsets = torch.arange(k, device=batch.P.device) * bins
    rows_per_chunk = max(1, VALUES_PER_CHUNK // (k * bins))
    null = torch.zeros(k * bins, k * bins, dtype=torch.float64, device=batch.P.device)
    diagonal = torch.zeros(k * bins, dtype=torch.float64, device=batch.P.device)
    for start in range(0, len(batch.P), rows_per_chunk):
        P, w = batch.P[start : start + rows_per_chunk], batch.w[start : start + rows_per_chunk, None]
        columns = bin_of_cell[torch.bucketize(P.contiguous(), edges)] + offsets
        # Row by row, w p_k is placed in the column of the bin of class k.
        wp_by_bin = torch.zeros(len(P), k * bins, dtype=torch.float64, device=P.device).scatter_(1, columns, w * P)
        products = wp_by_bin.T @ wp_by_bin
        diagonal.index_add_(0, columns.flatten(), (w * w * P).flatten())
        null.sub_(torch.triu(products))
    null.diagonal().add_(diagonal)
    return null


def _score_sums(layout: TensorLayout, batch: Batch) -> torch.Tensor:
    """Return the sums of the Brier score and of the log loss, (2, 7), in the order of `SCORE_SUMS`."""
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
        terms = {"w": w, "ww": w * w, "ws": w * s, "wws": w * w * s, "wwss": w * w * s * s}
        terms |= {"infinite": infinite.double(), "infinite_w": batch.w - w}
        rows.append(torch.stack([terms[name].sum() for name in SCORE_SUMS]))
    return torch.stack(rows)


def _special_counts(layout: TensorLayout, batch: Batch, scores: torch.Tensor) -> dict[str, int]:
    """Return counts of special rows by their field in `SpecialRowCounts`; those left out are 0."""
    counts = {}
    if layout.ranks:
        counts["ties"] = ((batch.P == batch.P.amax(dim=1, keepdim=True)).sum(dim=1) > 1).sum()
    if layout.all_lenses and not layout.logits:  # finite logits give neither zeros nor ones
        counts["zeros"], counts["ones"] = (batch.P == 0).sum(), (batch.P == 1).sum()
        counts["inexact_sums"] = (_sum_deviation(layout, batch.P, scores) > 0).sum()
        counts["true_zeros"] = (batch.P.gather(1, batch.y[:, None]) == 0).sum()
    values = torch.stack(list(counts.values())).tolist() if counts else []
    return dict(zip(counts, values, strict=True))


def _sum_deviation(layout: TensorLayout, P: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the distance of each row sum from 1 (n,); 0 if it is as small as rounding of the dtype."""
    if scores.ndim == 1:
        return torch.zeros_like(P[:, 0])
    eps = torch.finfo(torch.float32 if scores.dtype == torch.bfloat16 else scores.dtype).eps
    deviation = (P.sum(dim=1) - 1).abs()
    return torch.where(deviation > max(layout.k * eps, NOTED_SUM_DEVIATION), deviation, 0.0)
