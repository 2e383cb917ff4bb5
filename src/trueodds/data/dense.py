"""Turn label maps and probability maps of images into predictions with one row per pixel and one cluster per image."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import OR_SINGLE_VALUE, Integer, check
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.remedies import restate_own_arguments


class DenseRows(NamedTuple):
    """The positions of images that have a class, as rows of which those of an image form a cluster.

    So intervals resample whole images, and tests flip the signs of whole images.
    """

    labels: Array  # (n,)
    probs: Array  # (n, K), or (n,) for the probability of the foreground
    cluster: Array  # (n,) image of each row
    positions: Array  # (n,) index of each row in the flat label maps
    shape: tuple[int, ...]  # of the label maps

    @property
    def notes(self) -> list[Note]:
        """The note on ignored labels, if there are any."""
        n = math.prod(self.shape)
        if len(self.labels) == n:
            return []
        text = f"{n - len(self.labels):,} of {n:,} labels are ignored values; their predictions are excluded."
        return [Note("TN143", text)]

    def restate_error(self, problem: InputError) -> InputError:
        """Rewrite an error in terms of images: the position of the bad value, and what an unusual label may mean."""

        def position(row: re.Match[str]) -> str:
            image, *pixel = (int(i) for i in np.unravel_index(self.positions[int(row[1])], self.shape))
            return f"image {image}" + (f", position ({', '.join(map(str, pixel))})" if pixel else "")

        fix = restate_own_arguments(problem).fix
        if problem.code == "TO105":
            label = problem.got.split(" in row ")[0].strip("'")
            mask = f"If {label} is the foreground, pass labels == {label}. " if self.probs.ndim == 1 else ""
            fix = f"{mask}If {label} stands for no class, pass ignore={label}. {fix}"
        return InputError(problem.code, problem.problem, re.sub(r"\brow (\d+)", position, problem.got), fix)


def rows_of_images(
    labels: ArrayLike, probs: ArrayLike, axis: int | None, ignore: int | Sequence[int] | None
) -> DenseRows:
    """Return one row per pixel, voxel or token of each image, without those of ignored labels.

    >>> rows = rows_of_images([[[0, 1], [1, 255]]], np.full((1, 2, 2, 2), 0.5), 1, 255)
    >>> rows.probs.shape, rows.cluster.tolist()
    ((3, 2), [0, 0, 0])
    >>> rows_of_images([[[0, 1], [1, 1]]], [[[0.1, 0.8], [0.9, 0.6]]], 1, None).probs.tolist()
    [0.1, 0.8, 0.9, 0.6]
    """
    axis = check("axis", axis, Integer | None, 1)
    ignore = check("ignore", ignore, Annotated[Sequence[Integer], OR_SINGLE_VALUE] | None)
    y, p = arrays.as_array(labels, "labels"), arrays.as_array(probs, "probs")
    p = _move_classes_to_last_axis(y, p, axis)
    is_class_label = np.ones(y.size, dtype=bool) if ignore is None else ~np.isin(y.reshape(-1), np.array(ignore))
    if not is_class_label.any():
        raise InputError(
            "TO108", "Every label is an ignored value.", f"ignore={describe(ignore)}", "Pass labels of classes as well."
        )
    image_of_position = np.repeat(np.arange(len(y)), int(np.prod(y.shape[1:])))
    flat_probs = p.reshape(-1) if p.shape == y.shape else p.reshape(-1, p.shape[-1])
    return DenseRows(
        y.reshape(-1)[is_class_label],
        flat_probs[is_class_label],
        image_of_position[is_class_label],
        np.flatnonzero(is_class_label),
        y.shape,
    )


def _move_classes_to_last_axis(y: Array, p: Array, axis: int | None) -> Array:
    """Return the probabilities with the classes along the last axis; raise TO107 if the shapes do not match."""
    if p.shape == y.shape:
        if axis is not None and _look_one_hot(y, p, axis):
            fix = "These labels look one-hot: pass labels.argmax(axis); else say axis=None."
            raise _shape_mismatch_error(y, p.shape, axis, fix)
        return p
    if axis is None or p.ndim != y.ndim + 1 or not -p.ndim <= axis < p.ndim or axis % p.ndim == 0:
        raise _shape_mismatch_error(y, p.shape, axis, _suggest_class_axis(y, p))
    moved = np.moveaxis(p, axis, -1)
    if moved.shape[:-1] != y.shape:
        raise _shape_mismatch_error(y, p.shape, axis, _suggest_class_axis(y, p))
    if moved.shape[-1] == 1:
        fix = f"Of a single class pass probs.squeeze({axis}): that of the foreground."
        raise _shape_mismatch_error(y, p.shape, axis, fix)
    return moved


def _look_one_hot(y: Array, p: Array, axis: int) -> bool:
    """Return whether both arrays sum to 1 along this axis, so that the labels are one-hot."""
    axis %= p.ndim
    if axis == 0 or p.shape[axis] < 2 or y.dtype.kind not in "biuf":
        return False
    return bool((y.sum(axis=axis) == 1).all() and np.allclose(p.sum(axis=axis), 1, rtol=0, atol=1e-3))


def _suggest_class_axis(y: Array, p: Array) -> str:
    possible_axes = [i for i in range(1, p.ndim) if p.ndim == y.ndim + 1 and p.shape[:i] + p.shape[i + 1 :] == y.shape]
    if possible_axes:
        return f"Pass axis={possible_axes[0]}, the axis of the classes."
    return "Pass the axis of the classes, axis=1 or axis=-1; foreground probabilities need the shape of the labels."


def _shape_mismatch_error(y: Array, shape: tuple[int, ...], axis: int | None, fix: str) -> InputError:
    """Return the error of labels and probabilities whose shapes differ by more than the axis of the classes."""
    return InputError(
        "TO107",
        "Labels (images, …) and probabilities must have the same shape, except for the class axis.",
        f"labels {y.shape}, probs {shape}, axis={axis}",
        fix,
    )
