"""Calls of probmetrics: metrics from labels and probabilities, and temperature scaling, on tensors.

Its ECE is that of torchmetrics and its smooth ECE that of relplot, after clipping and dividing the rows again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from probmetrics.calibrators import get_calibrator
from probmetrics.distributions import CategoricalProbs
from probmetrics.metrics import CalibrationError

from benchmarks.data import Arrays
from benchmarks.timed import Timed

DISTRIBUTION = "probmetrics"


def top_label(arrays: Arrays) -> Callable[[], float]:
    """15 left-closed bins, probabilities clipped to [1e-7, 1 − 1e-7]."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])
    return lambda: CalibrationError(n_bins=15).compute_from_labels_probs(y, P).item()


def temperature(arrays: Arrays) -> Timed:
    """Bisection on the gradient, its default."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])

    def ask() -> object:
        return get_calibrator("temp-scaling").fit_torch(CategoricalProbs(P), y)

    return Timed(ask, value=lambda calibrator: calibrator.invtemp_)


def timed_fit(name: str) -> Callable[[Arrays], Timed]:
    """Fit with default settings, and return the mean square of recalibrated rows."""

    def answer(arrays: Arrays) -> Timed:
        P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])

        def value(calibrator: object) -> float:
            return calibrator.predict_proba_torch(CategoricalProbs(P[:1000])).get_probs().square().mean().item()

        return Timed(
            lambda: get_calibrator(name, **{f"{name}_print_init_info": False}).fit_torch(CategoricalProbs(P), y),
            value=value,
        )

    return answer


ANSWERS = {
    "top-label": top_label,
    "temperature": temperature,
    "vector": timed_fit("svs"),  # a shift and a scale per class, with shrinkage toward the identity
    "dirichlet": timed_fit("sms"),  # the same with every other class's log probability
}
