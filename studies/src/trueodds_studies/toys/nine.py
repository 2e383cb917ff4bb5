"""How is the ECE of nine samples worked out, step by step?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.verbs import measure, test
from trueodds.binning.partition import Uniform
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens import as_lens
from trueodds_studies.toys.base import Panel, Toy, row, table, tidy

CLASSES = ("cat", "dog", "toad")
SAMPLES = (  # Pavlovic (2025), table 1, a picture: said of cat, dog, toad, and what it was
    (0.78, 0.12, 0.10, "cat"),
    (0.10, 0.64, 0.26, "dog"),
    (0.04, 0.04, 0.92, "dog"),
    (0.58, 0.30, 0.12, "cat"),
    (0.05, 0.51, 0.44, "cat"),
    (0.85, 0.15, 0.00, "cat"),
    (0.22, 0.70, 0.08, "dog"),
    (0.63, 0.34, 0.03, "toad"),
    (0.02, 0.15, 0.83, "toad"),
)
PRINTED = 0.10445
DIGITS = 5  # of that number
BINS = 5

SAMPLES_LEGEND = """said: the class with the largest probability, confidence: that probability; ECE looks at nothing else. bin: which fifth of [0, 1]
the confidence lies in, the upper end included. came: what it was. right: 1 where that is what was said."""

BINS_LEGEND = """share: of the nine samples. accuracy: how often right. confidence: its mean. gap: the distance between the two. adds: share times gap;
ECE is their sum. adds (5 digits): the same rounded before it is summed. Bins without a sample add nothing."""


def samples() -> Predictions:
    """The nine samples."""
    return Predictions([sample[3] for sample in SAMPLES], [sample[:3] for sample in SAMPLES], classes=CLASSES)


def counts(bins: int) -> list[int]:
    """How many of the nine lie in each bin, the empty ones included."""
    (view,) = as_lens("confidence").views(samples())
    return np.bincount(Uniform(bins).freeze(view).index(view.at), minlength=bins).tolist()


def nine(seed: int) -> Toy:
    """The text's tables 1 to 4, its ECE, and what nine samples can tell at all."""
    preds = samples()
    estimate = measure(preds, "ece", lens="confidence", bins=BINS, rng=seed)
    chance = test(preds, "consistency", lens="confidence", bins=BINS, rng=seed)
    bins = _bins(preds)
    rounded = tidy(sum(bin_row["adds (5 digits)"] for bin_row in bins))
    noise_floor = estimate.noise_floor
    assert noise_floor is not None
    rows = (
        row("nine samples", "ECE, 5 bins", PRINTED, tidy(estimate.value),
            f"To five digits {estimate.value:.{DIGITS}f}, and {PRINTED} in the text. Three bins hold samples; their gaps, averaged over samples, are the ECE."),
        row("nine samples", "ECE, 5 bins, each bin's term rounded first", PRINTED, rounded,
            "The text's number comes out if what is added was rounded to five digits: its last digit is off."),
        row("nine samples", "ECE of a calibrated model that says the same (noise floor)", None, noise_floor,
            "Chance alone makes more than what was measured: of so few samples the number tells nothing."),
        row("nine samples", "p-value: how often chance makes at least as much", None, float(chance),
            "Nothing here speaks against calibration, and nothing for it."),
    )  # fmt: skip
    total = {
        "bin": "all",
        "range": "(0, 1]",
        "samples": preds.n,
        "adds": tidy(estimate.value),
        "adds (5 digits)": rounded,
    }
    tables = (
        table(
            "samples", "What the model said of nine pictures, and what they were.", _sample_rows(preds), SAMPLES_LEGEND
        ),
        table(
            "nine",
            f"Bin by bin to an ECE of {estimate.value:.6f}; the text has {PRINTED}.",
            [*bins, total],
            BINS_LEGEND,
        ),
    )
    panel = Panel(
        "ECE step by step: said and seen",
        "share",
        {name: {f"bin {bin_row['bin']}": bin_row[name] for bin_row in bins} for name in ("confidence", "accuracy")},
    )
    return Toy("nine samples", rows, tables, panel)


def _sample_rows(preds: Predictions) -> list[dict[str, Any]]:
    (view,) = as_lens("confidence").views(preds)
    place = Uniform(BINS).freeze(view).index(view.at)
    return [
        {
            "sample": i + 1, **dict(zip(CLASSES, sample[:3], strict=True)), "said": CLASSES[int(np.argmax(sample[:3]))],
            "confidence": float(view.p[i]), "bin": int(place[i]) + 1, "came": sample[3], "right": int(view.y[i]),
        }
        for i, sample in enumerate(SAMPLES)
    ]  # fmt: skip


def _bins(preds: Predictions) -> list[dict[str, Any]]:
    (view,) = as_lens("confidence").views(preds)
    binned = BinnedError(Uniform(BINS)).bins(view).binned
    assert binned.bin_index is not None
    rows = []
    for b, n, p, y in zip(binned.bin_index, binned.n, binned.p, binned.y, strict=True):
        adds = tidy(n / preds.n * abs(p - y))
        rows.append({
            "bin": str(b + 1), "range": f"({b / BINS:g}, {(b + 1) / BINS:g}]", "samples": int(n), "share": tidy(n / preds.n),
            "accuracy": tidy(y), "confidence": tidy(p), "gap": tidy(abs(p - y)), "adds": adds,
            "adds (5 digits)": round(adds, DIGITS),
        })  # fmt: skip
    return rows
