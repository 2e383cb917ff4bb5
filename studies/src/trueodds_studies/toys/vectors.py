"""What does a model do with the probability that it does not give to its first choice?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.data.predictions import Predictions
from trueodds_studies.toys.base import Panel, Toy, distinct_ece, row, table, value

LENSES = ("confidence", "classwise", "canonical")
PERSON, ANIMAL = "0.1 on person", "0.1 on animal"
MEETS, MISSES = "q, came as said", "q, came otherwise"

LEGEND = """Two models of ten pictures of a road, each of which is said to show no creature with 0.9; one showed a person. And ten pictures each
for which q = (0.1, 0.2, 0.7) was said. came: how many of the ten each class was. confidence: the error of the largest probability;
classwise: of each class against the rest, mean over classes; canonical: of the whole vector (half the sum of the distances). log loss
is infinite where what came was said to be impossible."""


def ten(predicted: Sequence[float], counts: Sequence[int]) -> Predictions:
    """Ten pictures with one prediction, and how many of them each class was."""
    return Predictions(np.repeat(np.arange(3), counts), [list(predicted)] * 10)


CASES = {
    PERSON: ((0.9, 0.1, 0.0), (9, 1, 0)),  # Vaicenavicius et al. (2019), introduction: no creature, person, animal
    ANIMAL: ((0.9, 0.0, 0.1), (9, 1, 0)),
    MEETS: ((0.1, 0.2, 0.7), (1, 2, 7)),  # Pavlovic (2025), section 3.3.1
    MISSES: ((0.1, 0.2, 0.7), (1, 5, 4)),
}


def vectors() -> Toy:
    """The text's section 3.3."""
    results: dict[str, dict[str, Any]] = {}
    for name, (predicted, counts) in CASES.items():
        preds = ten(predicted, counts)
        errors = {lens: distinct_ece(preds, lens) for lens in LENSES}
        results[name] = {
            "said": _list(predicted),
            "came": _list(counts),
            **errors,
            "log loss": value(preds, "log_loss"),
        }
    rows = (
        row("only the maximum", f"confidence: {PERSON}", None, results[PERSON]["confidence"],
            "No creature was said with 0.9 and came 9 times of 10."),
        row("only the maximum", f"confidence: {ANIMAL}", None, results[ANIMAL]["confidence"],
            "The same to ECE, which never looks at who gets the rest."),
        row("only the maximum", f"classwise: {ANIMAL}", None, results[ANIMAL]["classwise"],
            "Class by class it shows: persons came though none was expected, and no animal came."),
        row("only the maximum", f"canonical: {ANIMAL}", None, results[ANIMAL]["canonical"],
            "A tenth of the probability lies on the wrong class; a car would brake for the wrong creature."),
        row("only the maximum", f"canonical: {MEETS}", 0.0, results[MEETS]["canonical"],
            "Where q was said, classes came as q says: calibrated."),
        row("only the maximum", f"canonical: {MISSES}", None, results[MISSES]["canonical"],
            "They came as (0.1, 0.5, 0.4): 0.3 of the probability is on the wrong class."),
    )  # fmt: skip
    lines = [{"case": name, **result} for name, result in results.items()]
    sentence = (
        f"Two models with ECE {results[PERSON]['confidence']:g} for their first choice; one of them has the rest on the "
        f"wrong class, which the class-wise error ({results[ANIMAL]['classwise']:.3f}) and the canonical one "
        f"({results[ANIMAL]['canonical']:.1f}) see."
    )
    panel = Panel(
        "Same confidence, other vectors",
        "error",
        {lens: {name: results[name][lens] for name in results} for lens in LENSES},
    )
    return Toy("only the maximum", rows, (table("vectors", sentence, lines, LEGEND),), panel)


def _list(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"
