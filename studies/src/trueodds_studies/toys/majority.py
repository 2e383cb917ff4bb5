"""Can a model be perfectly calibrated and know nothing?"""

from __future__ import annotations

from typing import Any

from trueodds.data.predictions import Predictions
from trueodds.lenses.ranked import accuracy
from trueodds_studies.toys.base import Panel, Toy, resolution, row, table, value

ANIMALS = ("cat",) * 7 + ("dog",) * 2 + ("toad",)
RATES = (0.7, 0.2, 0.1)
ALWAYS, LOOKS = "always says cat", "looks at the picture"

LEGEND = """Ten pictures: 7 cats, 2 dogs, a toad. The first model says (0.7, 0.2, 0.1) of every picture. The second says 0.8 for what it sees and
0.1 for each other class; it takes the toad for a cat. log loss (nats), Brier: less is better. resolution: how much of Brier's score is
saved by telling pictures apart; of a model that says the same of all it is 0."""


def models() -> dict[str, Predictions]:
    """Both models on the same ten pictures."""
    classes = ("cat", "dog", "toad")
    sees = [[0.1, 0.8, 0.1] if animal == "dog" else [0.8, 0.1, 0.1] for animal in ANIMALS]
    return {
        ALWAYS: Predictions(ANIMALS, [RATES] * len(ANIMALS), classes=classes),
        LOOKS: Predictions(ANIMALS, sees, classes=classes),
    }


def measure_scores(preds: Predictions) -> dict[str, float]:
    """Calibration, and what else makes a model good."""
    return {
        "ECE": value(preds, "ece", lens="confidence", bins=5),
        "accuracy": accuracy(preds),
        "log loss": value(preds, "log_loss"),
        "Brier": value(preds, "brier"),
        "resolution": resolution(preds),
    }


def majority() -> Toy:
    """The text's pathology of section 3.1, beside a model that is of use."""
    scores = {name: measure_scores(preds) for name, preds in models().items()}
    always, looks = scores[ALWAYS], scores[LOOKS]
    rows = (
        row("majority class", f"ECE: {ALWAYS}", 0.0, always["ECE"],
            "It says 0.7 and is right 7 times of 10: perfectly calibrated."),
        row("majority class", f"accuracy: {ALWAYS}", None, always["accuracy"], "No more than the share of cats."),
        row("majority class", f"resolution: {ALWAYS}", None, always["resolution"],
            "It tells no picture from another, so that it knows nothing about any of them."),
        row("majority class", f"ECE: {LOOKS}", None, looks["ECE"],
            "Right 9 times of 10 where it says 0.8: too modest, so that by ECE alone it is the worse model."),
        row("majority class", f"log loss less that of the other: {LOOKS}", None, looks["log loss"] - always["log loss"],
            "A proper score sees who knows more: read it, and accuracy, beside every ECE."),
    )  # fmt: skip
    lines: list[dict[str, Any]] = [{"model": name, **model_scores} for name, model_scores in scores.items()]
    sentence = (
        f"ECE prefers the model that {ALWAYS} ({always['ECE']:g} against {looks['ECE']:.2g}); accuracy, log loss, "
        "Brier and resolution prefer the one that looks."
    )
    panel = Panel(
        "ECE 0, and useless",
        "ECE, accuracy, log loss, resolution",
        {name: _shown(model_scores) for name, model_scores in scores.items()},
    )
    return Toy("majority class", rows, (table("majority", sentence, lines, LEGEND),), panel)


def _shown(scores: dict[str, float]) -> dict[str, float]:
    return {name: scores[name] for name in ("ECE", "accuracy", "log loss", "resolution")}
