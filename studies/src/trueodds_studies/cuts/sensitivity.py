"""What does each setting make of the same predictions? Values, noise floors, and what is left to choose elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.verbs import measure
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens import as_lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.floors import floors
from trueodds_studies.cuts.settings import COUNTS, FREE, NORMS, OWN, REASONABLE, SCHEMES, described

LENS = "confidence"


def curve(preds: Predictions, redraws: int, seed: int) -> list[dict[str, Any]]:
    """Every norm at every number of bins of every scheme; of ECE also the noise floor and the bins that hold rows."""
    configurations: list[tuple[str, int | None, dict[str, Any]]] = [
        (scheme, k, dict(make(k, preds.n))) for scheme, make in SCHEMES.items() for k in COUNTS if k < preds.n
    ]
    configurations += [(scheme, None, dict(settings)) for scheme, settings in FREE.items()]
    estimands = [
        Estimand.of(ESTIMATORS.make("ece", settings), as_lens(LENS), preds) for _, _, settings in configurations
    ]
    drawn = floors(preds, estimands, np.random.default_rng([seed, 7]), redraws)
    rows = []
    for (scheme, k, settings), draws in zip(configurations, drawn, strict=True):
        row: dict[str, Any] = {"scheme": scheme, "bins": k}
        for norm, name in NORMS.items():
            answer = measure(preds, name, lens=LENS, interval=None, **settings)
            row[norm] = answer.value
            if name == "ece":
                row["occupied"] = answer.settings["occupied_bins"]
                row["floor"] = None if draws is None else float(draws.mean())
        row["reasonable"] = scheme != "one bin per score" if k is None else REASONABLE[0] <= k <= REASONABLE[1]
        rows.append(row)
    return rows


def own(preds: Predictions) -> list[dict[str, Any]]:
    """Every estimator at its own settings."""
    return [
        {"estimator": name, "settings": described(settings), "value": float(_bare(preds, name, settings))}
        for name, every in OWN.items()
        for settings in every
    ]


def _bare(preds: Predictions, name: str, settings: Any) -> float:
    return float(measure(preds, name, lens=LENS, interval=None, **settings))
