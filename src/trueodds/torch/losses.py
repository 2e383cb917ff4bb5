"""Differentiable losses that regularize the calibration of a network: MMCE, soft-binned ECE, SKCE and focal loss.

Batches of logits, labels and weights are checked and converted to log-probabilities.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import BinCount, FiniteOrder, NonNegative, Positive, Range, check
from trueodds.core.signatures import checks_arguments
from trueodds.data.arrays import as_array, tensor_to_array
from trueodds.data.probabilities import check_logits
from trueodds.data.weights import check_weights
from trueodds.estimators._pairwise.similarity_kernels import Bandwidth, median_distance_of_rows


class CalibrationLoss(torch.nn.Module):
    """Base class of the losses, which compute a scalar from a batch of logits with labels.

    Subclasses define `_evaluate` and name their settings. To regularize a network, add a multiple to its loss:
    ``cross_entropy(logits, target) + 2.0 * MMCELoss()(logits, target)``.
    """

    setting_names: tuple[str, ...]

    def forward(self, logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        """Compute the loss of a batch, in at least float32 even under autocast; gradients flow to the logits.

        Parameters
        ----------
        logits : Tensor of shape (n, K) or (n,)
            Logits, or log-probabilities; of shape (n,) the log odds of the second of two classes. −inf is the logit
            of an exact zero.
        target : Tensor of shape (n,)
            Class numbers 0..K−1.
        weight : Tensor of shape (n,), optional
            Weights of the rows, of which only ratios matter. A row of weight 0 is ignored.

        Returns
        -------
        Tensor of shape ()
            The loss.

        Raises
        ------
        InputError
            TO101, TO103, TO105, TO107, TO108 or TO110 for invalid logits, labels or weights.
        """
        with torch.autocast(logits.device.type if isinstance(logits, torch.Tensor) else "cpu", enabled=False):
            return self._evaluate(read_batch(logits, target, weight))

    def _evaluate(self, batch: LabeledBatch) -> torch.Tensor:
        """Compute the loss of a checked batch."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Describe the settings.

        Returns
        -------
        str
            One line of text.
        """
        settings = {name: getattr(self, name) for name in self.setting_names}
        return ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in settings.items()
        )


class MMCELoss(CalibrationLoss):
    r"""Maximum mean calibration error (MMCE) of the confidence: the estimator `mmce` as a loss.

    Parameters
    ----------
    bandwidth : float, default=0.4
        Distance of confidences over which the kernel decays by a factor of e.
    weighted : bool, default=False
        Whether rows with a correct and with a wrong prediction have the same total weight. This is the loss with which
        the paper trains. It is not 0 for a calibrated network.

    Raises
    ------
    InputError
        TO203 for an invalid setting.

    Notes
    -----
    .. math:: \Big(\sum_{ij} w_i w_j (c_i - p_i)(c_j - p_j)\, e^{-|p_i - p_j| / \theta}\Big)^{1/2}

    p is the confidence and c is 1 for a correct prediction, else 0; weights w sum to 1. With ``weighted=True`` those
    of the correct rows sum to 1, and those of the wrong rows too; a side without rows counts 0. At 0, where the root
    has no derivative, the gradient is 0.

    Range: [0, 1], weighted [0, 2]; 0 is best. A weight of 2 equals two rows. Bias: upward in small batches. Cost: O(n²)
    time and memory.

    References
    ----------
    .. [1] Kumar, Sarawagi & Jain (2018).

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 2.2], [0.0, 2.2]])
    >>> round(MMCELoss()(logits, torch.tensor([1, 0])).item(), 2)
    0.4
    """

    setting_names = ("bandwidth", "weighted")

    @checks_arguments
    def __init__(self, bandwidth: float = 0.4, weighted: bool = False) -> None:
        super().__init__()
        self.bandwidth = check("bandwidth", bandwidth, Positive, 0.4)
        self.weighted = check("weighted", weighted, bool, False)

    def _evaluate(self, batch: LabeledBatch) -> torch.Tensor:
        confidence, correct = batch.top_label()
        residual = batch.share * (correct - confidence)
        if self.weighted:
            # The total weight of the correct rows, for these, and that of the wrong rows.
            side_total = torch.where(correct > 0, batch.share @ correct, batch.share @ (1 - correct))
            residual = residual / torch.where(batch.share > 0, side_total, 1.0)
        kernel = torch.exp((confidence[:, None] - confidence[None]).abs() / -self.bandwidth)
        return _root(residual @ kernel @ residual, 2.0)


SofteningTemperature = Annotated[float, Range(1e-12, closed="left")]  # for smaller ones float32 would overflow


class SoftBinnedECELoss(CalibrationLoss):
    r"""Soft-binned calibration error of the confidence, in which each row is shared by several bins.

    As the temperature goes to 0 it becomes the error with uniform bins: `rmsce` for order 2, `ece` for order 1.

    Parameters
    ----------
    bins : int, default=15
        Number of bins.
    temperature : float, default=0.01
        Softness of the bins.
    order : float, default=2
        Power of the mean over bins.

    Raises
    ------
    InputError
        TO203 for an invalid setting.

    Notes
    -----
    .. math:: u_{ib} \propto e^{-(p_i - \xi_b)^2 / T}, \quad S_b = \sum_i w_i u_{ib}, \quad
        \Big(\sum_b S_b\,\Big|\frac{1}{S_b}\sum_i w_i u_{ib} (c_i - p_i)\Big|^q\Big)^{1/q}

    p is the confidence, c is 1 for a correct prediction, else 0, ξ are the centers of the bins, and weights w sum to 1.
    At 0, where the root has no derivative, the gradient is 0.

    Range: [0, 1]; 0 is best. A weight of 2 equals two rows. Bias: upward in small batches. Cost: O(n · bins).

    References
    ----------
    .. [1] Karandikar et al. (2021).

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 2.2], [0.0, 2.2]])
    >>> round(SoftBinnedECELoss()(logits, torch.tensor([1, 0])).item(), 2)
    0.4
    """

    setting_names = ("bins", "temperature", "order")

    @checks_arguments
    def __init__(self, bins: int = 15, temperature: float = 0.01, order: float = 2.0) -> None:
        super().__init__()
        self.bins = check("bins", bins, BinCount, 15)
        self.temperature = check("temperature", temperature, SofteningTemperature, 0.01)
        self.order = check("order", order, FiniteOrder, 2.0)

    def _evaluate(self, batch: LabeledBatch) -> torch.Tensor:
        confidence, correct = batch.top_label()
        centers = (torch.arange(self.bins, dtype=confidence.dtype, device=confidence.device) + 0.5) / self.bins
        # With logarithms, the mean of a bin is accurate even if the memberships of all rows are tiny.
        log_memberships = torch.log_softmax((confidence[:, None] - centers).square() / -self.temperature, dim=1)
        log_masses = log_memberships + batch.share.log()[:, None]
        gaps = (torch.softmax(log_masses, dim=0) * (correct - confidence)[:, None]).sum(dim=0)
        bin_masses = torch.logsumexp(log_masses, dim=0).exp()
        return _root((bin_masses * gaps.abs() ** self.order).sum(), self.order)


class KernelCalibrationLoss(CalibrationLoss):
    r"""Squared kernel calibration error (SKCE) of the whole probability vectors: the estimator `skce` as a loss.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        Distance of probability vectors over which the kernel decays by a factor of e. "median" is the median distance
        in the batch, which is treated as constant in the gradient and computed on the CPU.
    unbiased : bool, default=True
        Whether pairs of a row with itself are omitted. The loss may then be negative.

    Raises
    ------
    InputError
        TO203 for an invalid setting.

    Notes
    -----
    .. math:: \frac{\sum_{i \ne j} w_i w_j\, e^{-\lVert p_i - p_j \rVert / \nu}\, (y_i - p_i)\cdot(y_j - p_j)}
        {\sum_{i \ne j} w_i w_j}

    y is one-hot. With ``unbiased=False`` the sums include i = j. A single row has no pairs, and an unbiased loss of 0.

    Range: at most 2, and at least 0 with ``unbiased=False``; 0 is best. Weights are importance weights; with
    ``unbiased=False`` a weight of 2 equals two rows. Cost: O(n²K) time, O(n²) memory.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2019).

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 2.2], [0.0, 2.2]])
    >>> round(KernelCalibrationLoss(bandwidth=0.5)(logits, torch.tensor([1, 0])).item(), 2)
    -0.18
    """

    setting_names = ("bandwidth", "unbiased")

    @checks_arguments
    def __init__(self, bandwidth: float | Literal["median"] = "median", unbiased: bool = True) -> None:
        super().__init__()
        self.bandwidth = check("bandwidth", bandwidth, Bandwidth, "median")
        self.unbiased = check("unbiased", unbiased, bool, True)

    def _evaluate(self, batch: LabeledBatch) -> torch.Tensor:
        p, share = batch.log_p.exp(), batch.share
        bandwidth = self.bandwidth
        if bandwidth == "median":
            rows, weights = (values.detach().cpu().double().numpy() for values in (p, share))
            bandwidth = median_distance_of_rows(rows, weights)
        # Distances by a matrix product would be inaccurate where they are small.
        distance = torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")
        residual = share[:, None] * (torch.nn.functional.one_hot(batch.target, p.shape[1]) - p)
        pair_terms = torch.exp(distance / -bandwidth) * (residual @ residual.T)
        if not self.unbiased:
            return pair_terms.sum()
        pair_weights = torch.outer(share, share)
        pair_sum, weight_sum = (  # without pairs of a row with itself
            (values - torch.diag(values.diagonal())).sum() for values in (pair_terms, pair_weights)
        )
        return pair_sum / torch.where(weight_sum > 0, weight_sum, 1.0)


class FocalLoss(CalibrationLoss):
    r"""Focal loss: the cross-entropy with less weight on rows whose class already has a high probability.

    Unlike the other losses it replaces the cross-entropy. Networks trained with it are less overconfident; it is
    minimal for an underconfident network, not for a calibrated one. Label smoothing, which acts similarly, is part of
    PyTorch: ``torch.nn.CrossEntropyLoss(label_smoothing=0.05)``.

    Parameters
    ----------
    gamma : float, default=3.0
        Exponent; 0 gives the cross-entropy.

    Raises
    ------
    InputError
        TO203 for an invalid setting.

    Notes
    -----
    .. math:: -\sum_i w_i\,(1 - p_{iy_i})^\gamma \log p_{iy_i}

    Weights w sum to 1. Range: [0, ∞). A weight of 2 equals two rows. Cost: O(nK).

    References
    ----------
    .. [1] Lin et al. (2017).
    .. [2] Mukhoti et al. (2020).

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 2.2], [0.0, 2.2]])
    >>> round(FocalLoss()(logits, torch.tensor([1, 0])).item(), 2)
    0.84
    """

    setting_names = ("gamma",)

    @checks_arguments
    def __init__(self, gamma: float = 3.0) -> None:
        super().__init__()
        self.gamma = check("gamma", gamma, NonNegative, 3.0)

    def _evaluate(self, batch: LabeledBatch) -> torch.Tensor:
        target = batch.target[:, None]
        log_p = batch.log_p.gather(1, target)[:, 0]
        # 1 − p is computed as the sum of the other classes, which is accurate if p is close to 1. Their logarithms are
        # kept finite, because log 0 would have no gradient.
        smallest = torch.finfo(batch.log_p.dtype).min
        others = batch.log_p.scatter(1, target, smallest).clamp(min=smallest)
        log_factor = self.gamma * torch.logsumexp(others, dim=1)
        # For an exact zero the factor is 1; its derivative would be infinite.
        is_zero = torch.isneginf(log_p)
        row_losses = -torch.where(is_zero, log_p, log_factor.exp() * torch.where(is_zero, 0.0, log_p))
        return (batch.share * torch.where(batch.share > 0, row_losses, 0.0)).sum()


def _root(power_sum: torch.Tensor, order: float) -> torch.Tensor:
    """Return the root of this order of a sum of powers, with gradient 0 at 0; 0 if rounding made the sum negative."""
    if order == 1:
        return power_sum
    is_positive = power_sum > 0
    return torch.where(is_positive, torch.where(is_positive, power_sum, 1.0) ** (1 / order), 0.0)


class LabeledBatch(NamedTuple):
    """A batch with valid values, as the losses need it; floating-point numbers are float32 or float64."""

    log_p: torch.Tensor  # (n, K) log-probabilities, −inf for an exact zero
    predicted: torch.Tensor  # (n,) int64 predicted class; the first one of ties
    target: torch.Tensor  # (n,) int64 class numbers
    share: torch.Tensor  # (n,) weights divided by their sum

    def top_label(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the confidence of each row (n,), and whether the predicted class is correct (n,), 1 or 0."""
        confidence = self.log_p.gather(1, self.predicted[:, None])[:, 0].exp()
        return confidence, (self.predicted == self.target).to(confidence.dtype)


def read_batch(logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> LabeledBatch:
    """Check a batch and convert it; 16-bit logits become float32.

    Raises InputError TO101 for other objects or shapes, TO103 for logits without probabilities, TO105 for labels that
    are no class numbers, TO107 for different lengths, TO108 without rows, and TO110 for invalid weights.
    """
    for name, value in (("logits", logits), ("target", target), ("weight", weight)):
        if not isinstance(value, torch.Tensor) and not (name == "weight" and value is None):
            raise InputError("TO101", f"{name} must be a tensor.", describe(value), "Convert it with torch.as_tensor.")
    if logits.ndim not in (1, 2) or (logits.ndim == 2 and logits.shape[1] < 2) or not logits.is_floating_point():
        raise InputError(
            "TO101",
            "logits must be floating-point numbers (n, K) of K ≥ 2 classes, or (n,) log odds of the second of two.",
            f"{logits.dtype} of shape {tuple(logits.shape)}".removeprefix("torch."),
            "Pass logits[:, 0] for one column, logits.movedim(1, -1).flatten(0, -2) for images.",
        )
    n, k = len(logits), 2 if logits.ndim == 1 else logits.shape[1]
    for name, value, fix in (
        ("target", target, "Pass class numbers: target.argmax(dim=1) if it is one-hot."),
        ("weight", weight, "Pass one weight per row."),
    ):
        if value is not None and value.shape != (n,):
            got = f"shape {tuple(value.shape)} for {n:,} rows"
            raise InputError("TO107", f"{name} must have one value per row.", got, fix)
    if not bool(_are_values_valid(logits.detach(), target, weight, k)):
        _raise_value_error(logits.detach(), target, weight, k)
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    z = torch.stack([torch.zeros_like(z), z], dim=1) if z.ndim == 1 else z
    return LabeledBatch(torch.log_softmax(z, dim=1), z.argmax(dim=1), target.to(torch.int64), _to_shares(weight, z))


def _are_values_valid(z: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, k: int) -> torch.Tensor:
    """Return whether logits z, labels and weights have valid values, as a tensor with one element.

    Because the result of all checks is one tensor, it is transferred from the device once.
    """
    is_valid = (z < torch.inf).all() & (len(z) > 0)
    finite = torch.isfinite(z)
    is_valid = is_valid & (finite.all() if z.ndim == 1 else finite.any(dim=1).all())
    is_valid = is_valid & ((target >= 0) & (target < k)).all()
    if target.is_floating_point():
        is_valid = is_valid & (target == target.round()).all()
    if weight is not None:
        is_valid = is_valid & ((weight >= 0) & (weight < torch.inf)).all() & (weight > 0).any()
    return is_valid


def _raise_value_error(z: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, k: int) -> None:
    """Raise the error of the first argument whose values are invalid: logits z, labels or weights."""
    check_logits(as_array(tensor_to_array(z), "logits"))
    labels = tensor_to_array(target)
    is_wrong = ~((labels >= 0) & (labels < k) & (labels == np.rint(labels)))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(
            "TO105",
            f"Labels must be class numbers in 0..{k - 1}.",
            f"{labels[row]} in row {row} ({int(is_wrong.sum()):,} such rows)",
            "If they start at 1, subtract 1; remove rows without a label.",
        )
    check_weights(None if weight is None else tensor_to_array(weight.detach()), len(z))


def _to_shares(weight: torch.Tensor | None, z: torch.Tensor) -> torch.Tensor:
    """Return the weights divided by their sum (n,), in the dtype of the logits z; equal shares without weights."""
    if weight is None:
        return torch.full_like(z[:, 0], 1 / len(z)).detach()
    w = weight.to(torch.promote_types(weight.dtype, z.dtype))
    w = w / w.max()  # so that the sum does not overflow
    return (w / w.sum()).to(z.dtype)
