"""Toy data sets about confidence: ECE of nine samples by bins and estimator, and a majority classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.binning.uniform import Uniform
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens import as_lens
from trueodds.lenses.ranked import accuracy
from trueodds_studies.common.study_result import format_count
from trueodds_studies.pathologies.toy import (
    Panel,
    Toy,
    brier_resolution,
    measure_value,
    round_off,
    toy_row,
    toy_table,
)

NINE_CLASSES = ("cat", "dog", "toad")
NINE_SAMPLES = (  # Pavlovic (2025), table 1, a picture: said of cat, dog, toad, and what it was
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
PRINTED_ECE = 0.10445
DIGITS = 5  # of that number
BINS = 5

SAMPLES_LEGEND = """said: the class with the largest probability, confidence: that probability; ECE looks at nothing else. bin: which fifth of [0, 1]
the confidence lies in, the upper end included. came: what it was. right: 1 where that is what was said."""

BINS_LEGEND = """share: of the nine samples. accuracy: how often right. confidence: its mean. gap: the distance between the two. adds: share times gap;
ECE is their sum. adds (5 digits): the same rounded before it is summed. Bins without a sample add nothing."""


def nine_samples() -> Predictions:
    """The nine samples."""
    return Predictions(
        [sample[3] for sample in NINE_SAMPLES], [sample[:3] for sample in NINE_SAMPLES], classes=NINE_CLASSES
    )


def nine_bin_counts(bins: int) -> list[int]:
    """How many of the nine lie in each bin, the empty ones included."""
    (view,) = as_lens("confidence").views(nine_samples())
    return np.bincount(Uniform(bins).freeze(view).index(view.at), minlength=bins).tolist()


def nine_samples_toy(seed: int) -> Toy:
    """The text's tables 1 to 4, its ECE, and what nine samples can tell at all."""
    preds = nine_samples()
    estimate = measure(preds, "ece", lens="confidence", bins=BINS, rng=seed)
    chance = test(preds, "consistency", lens="confidence", bins=BINS, rng=seed)
    bins = _bin_rows(preds)
    rounded = round_off(sum(bin_row["adds (5 digits)"] for bin_row in bins))
    noise_floor = estimate.noise_floor
    assert noise_floor is not None
    rows = (
        toy_row("nine samples", "ECE, 5 bins", PRINTED_ECE, round_off(estimate.value),
            f"To five digits {estimate.value:.{DIGITS}f}, and {PRINTED_ECE} in the text. Three bins hold samples; their gaps, averaged over samples, are the ECE."),
        toy_row("nine samples", "ECE, 5 bins, each bin's term rounded first", PRINTED_ECE, rounded,
            "The text's number comes out if what is added was rounded to five digits: its last digit is off."),
        toy_row("nine samples", "ECE of a calibrated model that says the same (noise floor)", None, noise_floor,
            "Chance alone makes more than what was measured: of so few samples the number tells nothing."),
        toy_row("nine samples", "p-value: how often chance makes at least as much", None, float(chance),
            "Nothing here speaks against calibration, and nothing for it."),
    )  # fmt: skip
    total = {
        "bin": "all",
        "range": "(0, 1]",
        "samples": preds.n,
        "adds": round_off(estimate.value),
        "adds (5 digits)": rounded,
    }
    tables = (
        toy_table(
            "samples", "What the model said of nine pictures, and what they were.", _sample_rows(preds), SAMPLES_LEGEND
        ),
        toy_table(
            "nine",
            f"Bin by bin to an ECE of {estimate.value:.6f}; the text has {PRINTED_ECE}.",
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
            "sample": i + 1, **dict(zip(NINE_CLASSES, sample[:3], strict=True)), "said": NINE_CLASSES[int(np.argmax(sample[:3]))],
            "confidence": float(view.p[i]), "bin": int(place[i]) + 1, "came": sample[3], "right": int(view.y[i]),
        }
        for i, sample in enumerate(NINE_SAMPLES)
    ]  # fmt: skip


def _bin_rows(preds: Predictions) -> list[dict[str, Any]]:
    (view,) = as_lens("confidence").views(preds)
    binned = BinnedError(Uniform(BINS)).bins(view).binned
    assert binned.bin_index is not None
    rows = []
    for b, n, p, y in zip(binned.bin_index, binned.n, binned.p, binned.y, strict=True):
        adds = round_off(n / preds.n * abs(p - y))
        rows.append({
            "bin": str(b + 1), "range": f"({b / BINS:g}, {(b + 1) / BINS:g}]", "samples": int(n), "share": round_off(n / preds.n),
            "accuracy": round_off(y), "confidence": round_off(p), "gap": round_off(abs(p - y)), "adds": adds,
            "adds (5 digits)": round(adds, DIGITS),
        })  # fmt: skip
    return rows


BIN_COUNTS = (1, 2, 5, 10, 15, 20, 100)

BIN_COUNTS_LEGEND = """bins: of equal width on [0, 1]. empty: bins without a sample, which add nothing. alone: bins with a single sample, whose accuracy is
0 or 1. ECE: of the same nine samples each time. noise floor: the mean ECE of a calibrated model that says the same, over 999 draws."""


def bin_row(bins: int, seed: int) -> dict[str, Any]:
    """The nine samples in so many bins."""
    estimate, bin_counts = measure(nine_samples(), "ece", lens="confidence", bins=bins, rng=seed), nine_bin_counts(bins)
    return {
        "bins": bins, "empty": bin_counts.count(0), "alone": bin_counts.count(1), "fullest": max(bin_counts),
        "ECE": round_off(estimate.value), "noise floor": estimate.noise_floor,
    }  # fmt: skip


def more_bins_toy(seed: int) -> Toy:
    """The text's section 3.2 up to bins of equal width."""
    lines = [bin_row(bins, seed) for bins in BIN_COUNTS]
    by_bins, bin_counts = {line["bins"]: line for line in lines}, nine_bin_counts(10)
    alone = " and ".join(str(b + 1) for b, n in enumerate(bin_counts) if n == 1)
    rows = (
        toy_row("more bins", "ECE, 1 bin", None, by_bins[1]["ECE"],
            "Mean confidence against accuracy: too sure here and too modest there cancel."),
        toy_row("more bins", "ECE, 10 bins instead of 5", None, by_bins[10]["ECE"],
            f"Nothing changed but the bins, and {by_bins[5]['ECE']:.3f} became {by_bins[10]['ECE']:.3f}."),
        toy_row("more bins", "empty bins, of 10", 5, by_bins[10]["empty"], "Half of the bins add nothing."),
        toy_row("more bins", "samples in bin 8, of 10", 1, bin_counts[7], "What this bin saw is one picture."),
        toy_row("more bins", "samples in bin 9, of 10", 1, bin_counts[8],
            f"The text says that bins 8 and 9 hold one sample each; of these nine it is bins {alone}."),
        toy_row("more bins", "ECE, 100 bins", None, by_bins[100]["ECE"],
            "Every sample by itself: how far its confidence is from 1 if it is right, from 0 if not."),
        toy_row("more bins", "noise floor, 100 bins", None, by_bins[100]["noise floor"],
            "A calibrated model gets about the same: read an ECE beside its floor, and never two of different bins."),
    )  # fmt: skip
    low, high = (pick(line["ECE"] for line in lines) for pick in (min, max))
    sentence = f"The same nine samples: ECE from {low:.3f} to {high:.3f} by the number of bins."
    panel = Panel(
        "More bins, another number",
        "ECE",
        {name: {format_count(line["bins"], "bin"): line[name] for line in lines} for name in ("ECE", "noise floor")},
    )
    return Toy("more bins", rows, (toy_table("more_bins", sentence, lines, BIN_COUNTS_LEGEND),), panel)


CONFIDENCE = {"lens": "confidence"}
ADAPTIVE_MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "equal width, 5": ("ece", CONFIDENCE | {"bins": 5}),
    "equal mass, 2": ("ece", CONFIDENCE | {"partition": "equal-mass", "bins": 2}),
    "equal mass, 3": ("ece", CONFIDENCE | {"partition": "equal-mass", "bins": 3}),
    "equal mass, 5": ("ece", CONFIDENCE | {"partition": "equal-mass", "bins": 5}),
    "sweep": ("ece", CONFIDENCE | {"partition": "sweep"}),
    "kernel density": ("ece_kde", CONFIDENCE),
    "ACE, 3": ("ace", {"bins": 3}),
    "TACE, 3": ("tace", {"bins": 3}),
    "MacroCE": ("macroce", CONFIDENCE),
}

ADAPTIVE_LEGEND = """Every measure that the text names, on its nine samples. equal mass, 3: three bins of three samples. sweep: as many equal-mass bins as
let accuracy rise with confidence. kernel density: no bins. ACE: equal-mass bins for each class, averaged over classes; TACE: the same
above a probability of 0.01. MacroCE: the mean distance of confidence from 1 where the model is right and from 0 where it is wrong,
averaged over the two. noise floor: the mean of a calibrated model that says the same, over 999 draws; over it: how much is above that."""


def measure_samples(how: str, seed: int) -> dict[str, Any]:
    """The nine samples by one measure."""
    estimator, settings = ADAPTIVE_MEASURES[how]
    estimate = measure(nine_samples(), estimator, rng=seed, **settings)
    assert estimate.noise_floor is not None
    return {
        "measure": how, "looks at": estimate.lens, "value": round_off(estimate.value), "noise floor": estimate.noise_floor,
        "over it": estimate.value - estimate.noise_floor,
    }  # fmt: skip


def adaptive_bins_toy(seed: int) -> Toy:
    """The rest of the text's section 3.2."""
    lines = [measure_samples(how, seed) for how in ADAPTIVE_MEASURES]
    by_measure = {line["measure"]: line for line in lines}
    rows = (
        toy_row("adaptive bins", "ECE, 3 bins of three samples", None, by_measure["equal mass, 3"]["value"],
            "No bin is empty and none holds one sample; the number is another again."),
        toy_row("adaptive bins", "ECE, sweep", None, by_measure["sweep"]["value"],
            "The data choose the number of bins: as many as leave accuracy rising with confidence."),
        toy_row("adaptive bins", "ECE, kernel density", None, by_measure["kernel density"]["value"],
            "Without bins there is a bandwidth to choose."),
        toy_row("adaptive bins", "ACE, 3 bins per class", None, by_measure["ACE, 3"]["value"],
            "All three probabilities of a sample count here, not the largest alone."),
        toy_row("adaptive bins", "MacroCE", None, by_measure["MacroCE"]["value"],
            "It asks more than calibration: even a calibrated model is far from 0."),
    )  # fmt: skip
    low, high = (pick(line["value"] for line in lines) for pick in (min, max))
    excess = max(line["over it"] for line in lines)
    sentence = (
        f"Nine samples, {len(lines)} measures, from {low:.3f} to {high:.3f}; none is more than {excess:.3f} above what "
        "chance gives a calibrated model. Of so few samples no choice of bins makes a sure number."
    )
    panel = Panel(
        "Adaptive bins, or none",
        "value",
        {name: {line["measure"]: line[name] for line in lines} for name in ("value", "noise floor")},
    )
    return Toy("adaptive bins", rows, (toy_table("adaptive", sentence, lines, ADAPTIVE_LEGEND),), panel)


ANIMALS = ("cat",) * 7 + ("dog",) * 2 + ("toad",)
RATES = (0.7, 0.2, 0.1)
ALWAYS, LOOKS = "always says cat", "looks at the picture"

MAJORITY_LEGEND = """Ten pictures: 7 cats, 2 dogs, a toad. The first model says (0.7, 0.2, 0.1) of every picture. The second says 0.8 for what it sees and
0.1 for each other class; it takes the toad for a cat. log loss (nats), Brier: less is better. resolution: how much of Brier's score is
saved by telling pictures apart; of a model that says the same of all it is 0."""


def majority_models() -> dict[str, Predictions]:
    """Both models on the same ten pictures."""
    classes = ("cat", "dog", "toad")
    sees = [[0.1, 0.8, 0.1] if animal == "dog" else [0.8, 0.1, 0.1] for animal in ANIMALS]
    return {
        ALWAYS: Predictions(ANIMALS, [RATES] * len(ANIMALS), classes=classes),
        LOOKS: Predictions(ANIMALS, sees, classes=classes),
    }


def majority_scores(preds: Predictions) -> dict[str, float]:
    """Calibration, and what else makes a model good."""
    return {
        "ECE": measure_value(preds, "ece", lens="confidence", bins=5),
        "accuracy": accuracy(preds),
        "log loss": measure_value(preds, "log_loss"),
        "Brier": measure_value(preds, "brier"),
        "resolution": brier_resolution(preds),
    }


def majority_toy() -> Toy:
    """The text's pathology of section 3.1, beside a model that is of use."""
    scores = {name: majority_scores(preds) for name, preds in majority_models().items()}
    always, looks = scores[ALWAYS], scores[LOOKS]
    rows = (
        toy_row("majority class", f"ECE: {ALWAYS}", 0.0, always["ECE"],
            "It says 0.7 and is right 7 times of 10: perfectly calibrated."),
        toy_row("majority class", f"accuracy: {ALWAYS}", None, always["accuracy"], "No more than the share of cats."),
        toy_row("majority class", f"resolution: {ALWAYS}", None, always["resolution"],
            "It tells no picture from another, so that it knows nothing about any of them."),
        toy_row("majority class", f"ECE: {LOOKS}", None, looks["ECE"],
            "Right 9 times of 10 where it says 0.8: too modest, so that by ECE alone it is the worse model."),
        toy_row("majority class", f"log loss less that of the other: {LOOKS}", None, looks["log loss"] - always["log loss"],
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
        {name: _format_scores(model_scores) for name, model_scores in scores.items()},
    )
    return Toy("majority class", rows, (toy_table("majority", sentence, lines, MAJORITY_LEGEND),), panel)


def _format_scores(scores: dict[str, float]) -> dict[str, float]:
    return {name: scores[name] for name in ("ECE", "accuracy", "log loss", "resolution")}
