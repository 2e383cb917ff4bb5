"""Calls of probmetrics: ECE in 15 left-closed bins, and calibrators, on tensors.

Its ECE is that of torchmetrics and its smooth ECE that of relplot, with additional clipping and normalization of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from probmetrics.calibrators import get_calibrator
from probmetrics.distributions import CategoricalProbs
from probmetrics.metrics import CalibrationError

from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall

DISTRIBUTION = "probmetrics"


def prepare_top_label_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class, of probabilities clipped to [1e-7, 1 − 1e-7]."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])
    return lambda: CalibrationError(n_bins=15).compute_from_labels_probs(y, P).item()


def prepare_temperature_fit(arrays: Arrays) -> TimedCall:
    """Return the call that fits a temperature by bisection on the gradient, the default; value: 1 / temperature."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])
    return TimedCall(
        lambda: get_calibrator("temp-scaling").fit_torch(CategoricalProbs(P), y),
        extract_value=lambda calibrator: calibrator.invtemp_,
    )


def prepare_fit(name: str) -> Callable[[Arrays], TimedCall]:
    """Return the function that prepares the fit of a calibrator with default settings.

    The value of the call is the mean square of recalibrated rows.
    """

    def prepare_named_fit(arrays: Arrays) -> TimedCall:
        P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])

        def mean_square(calibrator: object) -> float:
            return calibrator.predict_proba_torch(CategoricalProbs(P[:1000])).get_probs().square().mean().item()

        return TimedCall(
            lambda: get_calibrator(name, **{f"{name}_print_init_info": False}).fit_torch(CategoricalProbs(P), y),
            extract_value=mean_square,
        )

    return prepare_named_fit


CALLS_BY_TASK = {
    "top-label": prepare_top_label_ece,
    "temperature": prepare_temperature_fit,
    "vector": prepare_fit("svs"),  # a shift and a scale per class, with shrinkage toward the identity
    "dirichlet": prepare_fit("sms"),  # in addition the log-probabilities of all other classes
}
