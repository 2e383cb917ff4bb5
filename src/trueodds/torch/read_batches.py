"""Read predictions from a PyTorch data loader, or predict its inputs with a model, for the functions of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from trueodds.io.source import Source
from trueodds.io.torch import make_source


def read_batches(
    batches: torch.utils.data.DataLoader[Any] | Iterable[Any],
    *,
    logits: bool = False,
    model: Callable[[Any], Any] | None = None,
    device: torch.device | str | None = None,
    classes: Sequence[Any] | None = None,
) -> Source:
    """Read predictions from a data loader, or predict its inputs with a model.

    Parameters
    ----------
    batches : DataLoader or iterable
        Pairs ``(scores, labels)`` of tensors, or mappings with ``"logits"`` or ``"probs"`` and ``"labels"``. With
        `model`, pairs ``(inputs, labels)``, or mappings with ``"labels"`` and the keyword arguments of the model. It is
        iterated whenever rows are needed, so an iterator that can be read only once is refused.
    logits : bool, default=False
        Whether the scores are logits. They are never guessed from their values.
    model : callable, optional
        Module or function that predicts the scores of a batch of inputs, without gradients: a tensor, the first of
        several, or a mapping with ``"logits"`` or ``"probs"``. A module is in evaluation mode while it predicts;
        afterwards its modes are restored. A function must set the mode of its modules itself.
    device : device, optional
        Device to which inputs and labels are moved for the model.
    classes : sequence, optional
        Names of the classes in the order of the columns. Labels are their numbers.

    Returns
    -------
    Source
        The rows, which all functions of the package accept.

    Raises
    ------
    InputError
        TO343 for a one-shot iterator or another object; TO344 for batches without scores or labels. While reading,
        TO340 to TO342 for invalid tensors and TO101 to TO116 for invalid values.

    See Also
    --------
    trueodds.torch.TorchTally : Sum up batches as they come, in memory that does not grow.

    Examples
    --------
    >>> import torch, trueodds as to
    >>> loader = torch.utils.data.DataLoader([(torch.tensor([2.0, 0.5]), 0), (torch.tensor([0.1, 1.3]), 0)])
    >>> round(to.measure(read_batches(loader, logits=True), "log_loss", interval=None).value, 3)
    0.832
    """
    return make_source(batches, logits, model, device, classes)
