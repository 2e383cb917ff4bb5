"""Check that a batch has the shapes and the dtypes of a tally of tensors, with a remedy for each common mistake."""

from __future__ import annotations

import torch

from trueodds.core.errors import InputError
from trueodds.torch.tensor_layout import TensorLayout


def check_batch(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> None:
    """Raise an error for swapped arguments, wrong shapes, or weights and votes that the tally does not support.

    Parameters
    ----------
    layout : TensorLayout
        Layout of the sums, which follows from the settings of the tally.
    scores : Tensor (n, K) or (n,)
        Probabilities or logits.
    target : Tensor (n,) or (n, K)
        Labels, votes or independent labels.
    weight : Tensor (n,) or None
        Weights.

    Raises
    ------
    InputError
        TO109 for swapped arguments, TO101 for another shape, TO107 for other lengths, TO345 for weights or votes
        without ``weighted=True``.
    """
    if layout.kind != "multilabel" and target.is_floating_point() and not scores.is_floating_point():
        raise InputError(
            "TO109",
            "The arguments look swapped: the predictions are integers, and target has fractions.",
            f"{scores.dtype} and {target.dtype}".replace("torch.", ""),
            "Pass (preds, target).",
        )
    if layout.kind != "confidence" and _count_classes(layout, scores) != layout.k:
        shape = "(n,) or (n, 2)" if layout.k == 2 and layout.kind == "classes" else f"(n, {layout.k})"
        raise InputError(
            "TO101",
            f"The predictions of {layout.k} classes must have the shape {shape}.",
            f"shape {tuple(scores.shape)}",
            _shape_remedy(layout.k, scores),
        )
    for name, values in (("target", target), ("weight", weight)):
        if values is not None and len(values) != len(scores):
            raise InputError(
                "TO107",
                f"{name} must have one row per prediction.",
                f"{len(values):,} rows of {name} and {len(scores):,} predictions",
                "Align the rows; nothing is truncated.",
            )
    has_votes = layout.kind == "classes" and target.ndim == 2
    if not layout.weighted and has_votes:
        raise InputError(
            "TO345",
            "Labels must be class numbers (n,); votes need additional sums.",
            f"target of shape {tuple(target.shape)}",
            "Pass target.argmax(dim=1) if it is one-hot, target[:, 0] if it is one column; for votes, weighted=True.",
        )
    if not layout.weighted and weight is not None:
        raise InputError(
            "TO345",
            "Weights need additional sums.",
            "a weight and weighted=False",
            "Create it with weighted=True.",
        )


def _count_classes(layout: TensorLayout, scores: torch.Tensor) -> int | None:
    """Return the number of classes of the scores; None if they have another number of dimensions."""
    if scores.ndim == 1 and layout.kind == "classes":
        return 2
    return scores.shape[1] if scores.ndim == 2 else None


def _shape_remedy(k: int, scores: torch.Tensor) -> str:
    """Return the remedy for scores that do not have the shape for k classes, such as those of images or tokens."""
    shape = scores.shape
    if scores.ndim > 2:
        images = "preds.movedim(1, -1).flatten(0, -2) and target.flatten() of images (n, K, …)"
        tokens = "preds.flatten(0, -2) and target.flatten() of tokens (n, …, K)"
        matching = [text for text, n_classes in ((images, shape[1]), (tokens, shape[-1])) if n_classes == k]
        return f"Pass {' or '.join(matching or (images, tokens))}."
    if scores.ndim == 2 and shape[1] == 1:
        return "Pass preds[:, 0], the scores of the second of two classes, and num_classes=2."
    if scores.ndim == 1 and shape[0] == k:
        return "Pass preds[None] and target[None] for a single row."
    if scores.ndim < 2:
        return "Pass one row of scores per prediction, not predicted classes."
    return f"Create it with num_classes={shape[1]}, or pass the scores of all classes."
