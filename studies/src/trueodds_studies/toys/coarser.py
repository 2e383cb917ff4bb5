"""How many classifiers are calibrated? As many as there are ways to forget something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.ranked import accuracy
from trueodds_studies.toys.base import Panel, Toy, distinct_ece, mean_confidence, resolution, row, table, value

CLASSES = ("cat", "dog", "toad")
WORLD = {  # how many of ten pictures of each kind show a cat, a dog, a toad
    ("bright", "near"): (8, 1, 1),
    ("bright", "far"): (6, 2, 2),
    ("dark", "near"): (2, 7, 1),
    ("dark", "far"): (2, 3, 5),
}
SEES: Mapping[str, Sequence[int]] = {  # which of light and distance h keeps
    "light and distance (the optimum)": (0, 1),
    "light only": (0,),
    "distance only": (1,),
    "nothing": (),
}
OPTIMUM, NOTHING = "light and distance (the optimum)", "nothing"
EXAGGERATED = "the optimum, exaggerated"

LEGEND = """40 pictures of four kinds, bright or dark, near or far, ten each. A model that sees only some of that says, of all pictures that look
alike to it, how often each class comes among them: g(X) = P[Y | h(X)]. predictions: how many different ones it makes. error: ECE of
whole vectors, pictures of the same prediction pooled. confidence: mean largest probability. resolution: how much of Brier's score is
saved by telling pictures apart. The last model ranks classes as the optimum does and squares its probabilities."""


def pictures() -> tuple[list[tuple[str, str]], Array]:
    """The kind of each picture, and its class (n,)."""
    kinds = [kind for kind, shown in WORLD.items() for _ in range(sum(shown))]
    return kinds, np.concatenate([np.repeat(np.arange(3), shown) for shown in WORLD.values()])


def coarsen(keeps: Sequence[int]) -> Predictions:
    """The classifier P[Y | h(X)], where h keeps some of what there is to see."""
    kinds, y = pictures()
    looks = [tuple(kind[i] for i in keeps) for kind in kinds]
    outcomes = np.eye(3)[y]
    rate = {look: outcomes[[other == look for other in looks]].mean(axis=0) for look in set(looks)}
    return Predictions(y, [rate[look] for look in looks])


def exaggerated() -> Predictions:
    """The optimum with its probabilities squared: no coarsening, and not calibrated."""
    optimum = coarsen(SEES[OPTIMUM])
    assert optimum.y is not None
    squared = optimum.P**2
    return Predictions(optimum.y, squared / squared.sum(axis=1, keepdims=True))


def measure_scores(preds: Predictions) -> dict[str, Any]:
    """Calibration beside what is known."""
    return {
        "predictions": len(np.unique(preds.P, axis=0)),
        "error": distinct_ece(preds, "canonical"),
        "confidence": mean_confidence(preds),
        "accuracy": accuracy(preds),
        "log loss": value(preds, "log_loss"),
        "resolution": resolution(preds),
    }


def coarser() -> Toy:
    """Proposition 1 of Vaicenavicius et al. (2019)."""
    scores = {name: measure_scores(coarsen(keeps)) for name, keeps in SEES.items()} | {
        EXAGGERATED: measure_scores(exaggerated())
    }
    says = {
        OPTIMUM: "Nothing is forgotten: the best model there is, and calibrated.",
        "light only": "It knows less and says so: as calibrated as the optimum, and less sure.",
        "distance only": "Another loss, as calibrated again; calibration does not rank the two.",
        NOTHING: "One prediction for all: calibrated, and of no use.",
    }
    rows = [
        row("many calibrated", f"error: sees {name}", 0.0, scores[name]["error"], lesson)
        for name, lesson in says.items()
    ]
    rows.append(
        row("many calibrated", f"error: {EXAGGERATED}", None, scores[EXAGGERATED]["error"],
            "It guesses the same classes as the optimum and is surer of them, but what it says does not come true.")
    )  # fmt: skip
    lines = [{"sees": name, **model_scores} for name, model_scores in scores.items()]
    sentence = (
        f"Four models with an error of {max(scores[name]['error'] for name in SEES):g}, log loss from "
        f"{scores[OPTIMUM]['log loss']:.3f} to {scores[NOTHING]['log loss']:.3f}: calibration alone does not say which is good."
    )
    panel = Panel(
        "Many calibrated classifiers",
        "error, confidence, resolution",
        {what: {name: scores[name][what] for name in scores} for what in ("error", "confidence", "resolution")},
    )
    return Toy("many calibrated", tuple(rows), (table("coarser", sentence, lines, LEGEND),), panel)
