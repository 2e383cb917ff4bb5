"""What did five networks say of the 10,000 test images of CIFAR-10, and which of them are learned from?"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.data import arrays, stamp

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NETS = {
    "vgg16": ("plambda_cifar10_vgg16.npz", "probs"),
    "densenet121": ("widmann_cifar10_4nets.npz", "probs_densenet121"),
    "inception_v3": ("widmann_cifar10_4nets.npz", "probs_inception_v3"),
    "resnet18": ("widmann_cifar10_4nets.npz", "probs_resnet18"),
    "vgg16_bn": ("widmann_cifar10_4nets.npz", "probs_vgg16_bn"),
}
"""Name, file and key. The first stands nearest to the paper's: a VGG16, though trained by others."""

SHARE = 0.8  # of the rows are learned from, as in the paper


def known(name: str) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in NETS:
        raise InputError("TO201", "There is no net of that name.", repr(name), near(name, NETS))
    return name


def load_softmax(net: str, data: str | None) -> tuple[Array, Array]:
    """Labels (n,) and softmax values (n, 10), float32 as they came."""
    return _load_softmax(net, data, stamp(NETS[net][0], data))


@lru_cache(maxsize=len(NETS))
def _load_softmax(net: str, data: str | None, _stamp: str) -> tuple[Array, Array]:
    """Read once for each file that lay there."""
    name, key = NETS[net]
    file = arrays(name, data, "labels", key)
    return file["labels"].astype(np.int64), file[key]


def split(n: int, seed: int, number: int) -> tuple[Array, Array]:
    """Row numbers to learn from and to judge on: one random cut, the same for every net.

    >>> learn, judge = split(10, seed=0, number=0)
    >>> len(learn), len(judge), sorted([*learn.tolist(), *judge.tolist()]) == list(range(10))
    (8, 2, True)
    """
    order = np.random.default_rng([seed, number]).permutation(n)
    cut = round(SHARE * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def parts(net: str, data: str | None, seed: int, number: int) -> tuple[Predictions, Predictions]:
    """The rows of a net that are learned from, and those that are held out."""
    y, P = load_softmax(net, data)
    learn, held_out = (Predictions(y[rows], P[rows]) for rows in split(len(y), seed, number))
    return learn, held_out
