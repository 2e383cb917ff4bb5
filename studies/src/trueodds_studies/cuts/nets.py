"""Whose predictions are binned? Seven networks, each with its own 10,000 test images' labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.data.predictions import Predictions
from trueodds_studies.data import arrays, stamp
from trueodds_studies.imaging.nets import NETS as OF_CIFAR10


@dataclass(frozen=True)
class Net:
    """Where a network's word and its labels are kept."""

    file: str
    key: str
    labels: str = "labels"

    @property
    def logits(self) -> bool:
        """Whether the file holds logits."""
        return self.key.startswith("logits")


NETS = {
    "cifar100 resnet110": Net("aigen_cifar100_resnet110.npz", "logits_test", "labels_test"),
    "resnet50": Net("aigen_cifar10_resnet50.npz", "logits_test", "labels_test"),
    **{name: Net(*where) for name, where in OF_CIFAR10.items()},
}
"""The first is of 100 classes, the others of CIFAR-10's ten."""
QUICK_NETS = ("resnet50", "vgg16", "vgg16_bn")  # of a quick study


def known(name: str) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in NETS:
        raise InputError("TO201", "There is no net of that name.", repr(name), near(name, NETS))
    return name


def files(nets: Sequence[str], data: str | None) -> dict[str, str]:
    """Every file that is read for these nets, with its stamp."""
    return {name: stamp(name, data) for name in dict.fromkeys(NETS[net].file for net in nets)}


def predictions(net: str, data: str | None, rows: int | None = None, seed: int = 0) -> Predictions:
    """All rows, or as many as are asked for, drawn by the seed and the same of every net."""
    preds = _predictions(net, data, stamp(NETS[net].file, data))
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, rows]).choice(preds.n, rows, replace=False))]


@lru_cache(maxsize=len(NETS))
def _predictions(net: str, data: str | None, _stamp: str) -> Predictions:
    """Read once for each file that lay there."""
    one = NETS[net]
    stored = arrays(one.file, data, one.labels, one.key)
    labels = stored[one.labels].astype(np.int64)
    return (Predictions.from_logits if one.logits else Predictions)(labels, stored[one.key])
