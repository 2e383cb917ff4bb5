"""Train PyTorch networks on one thread from a seed, and predict their logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trueodds.core.typing import Array
from trueodds_studies.common.mnist import LabeledImages

PREDICTED_AT_ONCE = 1000  # rows of one forward pass without gradients


@dataclass(frozen=True)
class TrainingSettings:
    """Optimizer and schedule."""

    epochs: int
    batch_size: int = 128
    optimizer: str = "adam"  # or "sgd", with momentum
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    drops: tuple[int, ...] = ()  # epochs after which the learning rate is divided by ten


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread: the same sums on every machine with the same library, and room for other workers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def build_network(build: Callable[[], Any], seed: int) -> Any:
    """A network whose initial weights depend on the seed only; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def train_epochs(
    network: Any, rows: LabeledImages, loss: Callable[[Any, Any], Any], settings: TrainingSettings, seed: int
) -> Iterator[int]:
    """Train epoch by epoch, and yield the number of each finished one, from 1; batches depend on the seed only."""
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
    common = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    if settings.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), **common)
    return torch.optim.SGD(network.parameters(), momentum=settings.momentum, nesterov=True, **common)


def predict_logits(network: Any, rows: LabeledImages) -> Array:
    """Logits (n, K) in float64, by one thread; the network is in evaluation mode."""
    network.eval()
    with torch.no_grad(), one_thread():
        parts = [network(batch).double().numpy() for batch in torch.from_numpy(rows.images).split(PREDICTED_AT_ONCE)]
    return np.concatenate(parts)
