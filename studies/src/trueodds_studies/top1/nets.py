"""What did three networks say of 50,000 ImageNet images, and was it right? No more than that is kept."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.data.predictions import Predictions
from trueodds_studies.data import arrays

FILE = "tcal_imagenet_top1.npz"
NETS = ("densenet161", "efficientnet_b7", "resnet152")


def known(name: str) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in NETS:
        raise InputError("TO201", "There is no net of that name.", repr(name), near(name, NETS))
    return name


def load_predictions(net: str, data: str | None, rows: int | None = None, seed: int = 0) -> Predictions:
    """Confidence and correctness: all rows, or as many as are asked for, drawn by the seed and the same of every net."""
    file = arrays(FILE, data, f"conf_{net}", f"correct_{net}")
    preds = Predictions.from_confidence(file[f"conf_{net}"], file[f"correct_{net}"])
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, rows]).choice(preds.n, rows, replace=False))]


def same_images(data: str | None) -> bool:
    """Whether the labels say that the rows of all nets are those of the same images."""
    file = arrays(FILE, data, *(f"label_{net}" for net in NETS))
    first, *others = file.values()
    return all(np.array_equal(first, other) for other in others)


def halves(preds: Predictions, seed: int) -> tuple[Predictions, Predictions]:
    """Rows to learn from and rows to judge on, by one random cut."""
    order = np.random.default_rng([seed, preds.n]).permutation(preds.n)
    cut = preds.n // 2
    return preds[np.sort(order[:cut])], preds[np.sort(order[cut:])]
