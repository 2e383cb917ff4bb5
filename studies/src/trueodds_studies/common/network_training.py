"""Train PyTorch networks from a seed, and predict their logits, reproducibly within `one_thread`.

PyTorch is an optional dependency: it is imported inside the functions, so that this module can be imported without it,
and `require_torch` checks that it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, install_command
from trueodds.core.typing import Array
from trueodds_studies.common.mnist import LabeledImages

PREDICTION_BATCH_SIZE = 1000  # rows of one forward pass without gradients


def require_torch(study: str) -> None:
    """Raise TO806, which names the study, if PyTorch is not installed."""
    if find_spec("torch") is None:
        raise InputError(
            "TO806", f"The study {study} trains networks with PyTorch.", "no torch", install_command("torch")
        )


@dataclass(frozen=True)
class TrainingSettings:
    """Optimizer, its settings, and the schedule of the learning rate."""

    epochs: int
    batch_size: int = 128
    optimizer: str = "adam"  # or "sgd", with Nesterov momentum
    learning_rate: float = 1e-3
    momentum: float = 0.9  # of "sgd"
    weight_decay: float = 0.0
    drops: tuple[int, ...] = ()  # epochs after which the learning rate is divided by ten


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread.

    Sums are then the same on every machine with the same version of PyTorch, and other processes keep their cores.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def build_network(build: Callable[[], Any], seed: int) -> Any:
    """Call `build` with PyTorch's global generator seeded, and restore the state of the generator afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def train_epochs(
    network: Any, rows: LabeledImages, loss: Callable[[Any, Any], Any], settings: TrainingSettings, seed: int
) -> Iterator[int]:
    """Train a network in place, and yield the number of each finished epoch, counted from 1.

    An epoch is trained when the next number is requested. The order of the batches depends on the seed only; for the
    same network on every machine, make it by `build_network` and train it within `one_thread`. `loss` returns a scalar
    tensor from logits (batch, K) and labels (batch,).
    """
    import torch

    images, labels = torch.from_numpy(rows.images), torch.from_numpy(rows.labels)
    optimizer = _make_optimizer(network, settings)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, list(settings.drops), gamma=0.1)
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(1, settings.epochs + 1):
        network.train()
        for batch in torch.randperm(len(labels), generator=generator).split(settings.batch_size):
            optimizer.zero_grad()
            loss(network(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
        yield epoch


def _make_optimizer(network: Any, settings: TrainingSettings) -> Any:
    """The optimizer of the settings for the weights of a network."""
    import torch

    shared_settings = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    if settings.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), **shared_settings)
    return torch.optim.SGD(network.parameters(), momentum=settings.momentum, nesterov=True, **shared_settings)


def predict_logits(network: Any, rows: LabeledImages) -> Array:
    """Logits (n, K) in float64 of the network in evaluation mode, on one thread."""
    import torch

    network.eval()
    with torch.no_grad(), one_thread():
        batches = torch.from_numpy(rows.images).split(PREDICTION_BATCH_SIZE)
        logits = [network(batch).double().numpy() for batch in batches]
    return np.concatenate(logits)
