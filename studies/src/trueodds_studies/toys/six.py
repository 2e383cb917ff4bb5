"""Can a model be calibrated in every part and still be wrong as a whole?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.data.predictions import Predictions
from trueodds_studies.toys.base import Panel, Toy, distinct_ece, row, table

TABLE = {  # Vaicenavicius et al. (2019), table 1: what is said, equally often, and how often each class then comes
    (0.1, 0.3, 0.6): (0.2, 0.2, 0.6),
    (0.1, 0.6, 0.3): (0.0, 0.7, 0.3),
    (0.3, 0.1, 0.6): (0.2, 0.2, 0.6),
    (0.3, 0.6, 0.1): (0.4, 0.5, 0.1),
    (0.6, 0.1, 0.3): (0.7, 0.0, 0.3),
    (0.6, 0.3, 0.1): (0.5, 0.4, 0.1),
}
ROWS_PER_PREDICTION = 10  # rows of each prediction: every share of the table is a whole number of them
PRINTED = ("confidence", "class:0", "class:1", "class:2")  # the lenses of which the paper says that all is well
OTHERS = ("rank:2", "rank:3", "top-2", "groups:[[0],[1,2]]", "groups:[[0,1],[2]]", "groups:[[0,2],[1]]")

LEGEND = """60 rows, ten of each prediction, which came exactly as the table of the paper says. error: how far what came is from what was said
where that prediction was made (half the sum of the distances): what the canonical lens averages."""

SAYS = {
    "confidence": "Everywhere 0.6 is said of the first choice, and it comes 6 times of 10.",
    "class:0": "Where 0.1 is said of the first class it comes with 0.1 on average: 0.2 and 0.0 cancel.",
    "class:1": "The same for the second.",
    "class:2": "And for the third: by itself every class is calibrated.",
    "rank:2": "Second choices come as often as they say.",
    "rank:3": "Third choices too.",
    "top-2": "So do the first two together.",
    "groups:[[0],[1,2]]": "Putting classes together does not help.",
    "groups:[[0,1],[2]]": "Nor does it here.",
    "groups:[[0,2],[1]]": "Nor here.",
    "canonical": "Only the whole vector shows it: every one of the six predictions is off by a tenth.",
}


def six_predictions() -> Predictions:
    """The paper's table 1 as rows."""
    labels = [
        np.repeat(np.arange(3), np.rint(ROWS_PER_PREDICTION * np.array(rate)).astype(int)) for rate in TABLE.values()
    ]
    return Predictions(np.concatenate(labels), np.repeat(np.array(list(TABLE)), ROWS_PER_PREDICTION, axis=0))


def six() -> Toy:
    """Table 1 of Vaicenavicius et al. (2019)."""
    preds = six_predictions()
    errors = {lens: distinct_ece(preds, lens) for lens in (*PRINTED, *OTHERS, "canonical")}
    rows = tuple(
        row("six predictions", f"error: {lens}", 0.0 if lens in PRINTED else None, error, SAYS[lens])
        for lens, error in errors.items()
    )
    lines: list[dict[str, Any]] = [
        {
            "said": str(predicted),
            "came": str(true_probs),
            "error": distinct_ece(preds[(preds.P == predicted).all(axis=1)], "canonical"),
        }
        for predicted, true_probs in TABLE.items()
    ]
    sentence = (
        f"Six predictions, {len(errors) - 1} lenses that find an error of at most "
        f"{max(errors[lens] for lens in (*PRINTED, *OTHERS)):g}, and the canonical lens, which finds {errors['canonical']:g}."
    )
    panel = Panel("Six predictions through every lens", "error", {"error": errors})
    return Toy("six predictions", rows, (table("six", sentence, lines, LEGEND),), panel)
