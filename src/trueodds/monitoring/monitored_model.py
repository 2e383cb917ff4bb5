"""What a monitor needs to know of a model: its classes, the views of the lens, and the centers of the slopes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, describe
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens
from trueodds.lenses.lens_by_name import as_lens
from trueodds.monitoring.capital import Alternatives
from trueodds.monitoring.monitor_settings import MonitorSettings


@dataclass(frozen=True, slots=True)
class MonitoredModel:
    """The model of a monitor, which its first rows fix.

    Attributes
    ----------
    kind : str
        Kind of the predictions.
    classes : tuple of str
        Names of the classes.
    lens : str
        The lens.
    views : tuple of str
        Names of its views.
    centers : tuple of float
        Log odds about which the slopes of each view turn, in addition to 0.
    """

    kind: str
    classes: tuple[str, ...]
    lens: str
    views: tuple[str, ...]
    centers: tuple[float, ...]

    @classmethod
    def from_batches(cls, batches: Iterable[Predictions], settings: MonitorSettings) -> MonitoredModel:
        """Return the model of the first rows. The default centers are the log odds of their mean probabilities."""
        batches = iter(batches)
        preds = next(batches)
        if preds.kind == "multilabel":
            raise InputError(
                "TO910",
                "A monitor needs mutually exclusive classes.",
                f"{preds.k} independent labels",
                "Monitor each label by itself: ⟨Predictions(Y[:, 0], P[:, 0])⟩.",
            )
        default = "confidence" if preds.kind == "confidence" else "positive" if preds.k == 2 else "classwise"
        lens = as_lens(settings.lens or default)
        lens.check(preds)
        probabilities = lens.probabilities(preds)
        if any(p.ndim > 1 for p in probabilities):
            raise InputError(
                "TO204",
                "A monitor needs a lens whose views have one probability per row.",
                f"⟨lens={lens.name!r}⟩",
                "Use ⟨lens='classwise'⟩ or ⟨lens='confidence'⟩.",
            )
        if settings.missing == "no-event" and len(probabilities) > 1:
            raise InputError(
                "TO205",
                "A missing label cannot be no event of any class: one of the classes was observed.",
                f"⟨missing='no-event'⟩ with {len(probabilities)} classes",
                "Use ⟨missing='least'⟩.",
            )
        if settings.center is not None:
            centers = [float(logit(settings.center))] * len(probabilities)
        else:
            sums, total = np.zeros(len(probabilities)), 0.0
            for part in itertools.chain([preds], batches):
                sums += [float(weighted_sum(part.w, p)) for p in lens.probabilities(part)]
                total += float(part.w.sum())
            centers = [_log_odds(mean) for mean in (sums / total).tolist()]
        names = tuple(str(name) for name in preds.classes)
        return cls(preds.kind, names, lens.name, tuple(lens.view_names(preds)), tuple(centers))

    @property
    def n_views(self) -> int:
        return len(self.views)

    def alternatives(self, settings: MonitorSettings) -> list[Alternatives]:
        """Return the alternatives of each view."""
        return [settings.alternatives(self.n_views, center) for center in self.centers]

    def check(self, preds: Predictions) -> Lens:
        """Return the lens; raise TO904 if predictions are of another model."""
        names = tuple(str(name) for name in preds.classes)
        if (preds.kind, names) != (self.kind, self.classes):
            raise InputError(
                "TO904",
                "The predictions have other classes than those that this monitor has seen.",
                f"{preds.kind} {describe(list(names))} instead of {self.kind} {describe(list(self.classes))}",
                "Start a monitor for each model.",
            )
        return as_lens(self.lens)


def _log_odds(mean: float) -> float:
    """Return log odds, rounded so that they do not depend on the order in which the rows were added up."""
    return round(float(logit(mean)), 6) if 0 < mean < 1 else 0.0
