"""Toy data sets about the confidence: ECE of nine samples by bins and estimator, and an uninformative classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.binning.uniform import Uniform
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.ranked import accuracy
from trueodds_studies.common.study_result import format_count
from trueodds_studies.pathologies.toy import (
    Panel,
    Toy,
    brier_resolution,
    measure_value,
    round_sum,
    toy_row,
    toy_table,
)

NINE_CLASSES = ("cat", "dog", "toad")
NINE_SAMPLES = (  # Pavlovic (2025), table 1, a figure: probabilities of cat, dog, toad, and the observed class
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
PRINTED_ECE = 0.10445  # in Pavlovic (2025)
DIGITS = 5  # decimals of the published number
BINS = 5

SAMPLES_LEGEND = """predicted: class with the largest probability; confidence: that probability, the only one that ECE
uses. bin: the fifth of [0, 1] that contains the confidence, including its upper end. observed: class of the image.
correct: 1 if the prediction is correct."""

BINS_LEGEND = """share: of the nine samples. accuracy: share of correct predictions. confidence: mean confidence. gap:
absolute difference of the two. term: share times gap; ECE is the sum of the terms. term (5 digits): the same, rounded
before summation. Empty bins contribute nothing."""


def nine_samples() -> Predictions:
    """The nine samples as predictions of three classes."""
    return Predictions(
        [sample[3] for sample in NINE_SAMPLES], [sample[:3] for sample in NINE_SAMPLES], classes=NINE_CLASSES
    )


def nine_bin_counts(bins: int) -> list[int]:
    """Number of the nine samples in each bin, including empty bins."""
    (view,) = as_lens("confidence").views(nine_samples())
    return np.bincount(Uniform(bins).fit(view).index(view.partition_values), minlength=bins).tolist()


def nine_samples_toy(seed: int) -> Toy:
    """ECE step by step, as in tables 1 to 4 of Pavlovic (2025), and the evidence that nine samples provide."""
    preds = nine_samples()
    estimate = measure(preds, "ece", lens="confidence", bins=BINS, rng=seed)
    verdict = test(preds, "consistency", lens="confidence", bins=BINS, rng=seed)
    bins = _bin_rows(preds)
    rounded = round_sum(sum(bin_row["term (5 digits)"] for bin_row in bins))
    noise_floor = estimate.noise_floor
    assert noise_floor is not None
    rows = (
        toy_row(
            "nine samples",
            "ECE, 5 bins",
            PRINTED_ECE,
            round_sum(estimate.value),
            f"{estimate.value:.{DIGITS}f} to five digits, and {PRINTED_ECE} in the paper. Three bins contain samples;"
            " the ECE is the mean of their gaps over samples.",
        ),
        toy_row(
            "nine samples",
            "ECE, 5 bins, each bin's term rounded first",
            PRINTED_ECE,
            rounded,
            "The number in the paper is obtained if the terms are rounded to five digits: its last digit is incorrect.",
        ),
        toy_row(
            "nine samples",
            "ECE of a calibrated model with the same predictions (noise floor)",
            None,
            noise_floor,
            "The expected value by chance is larger than the estimate: with so few samples, it is not informative.",
        ),
        toy_row(
            "nine samples",
            "p-value: probability of at least this value by chance",
            None,
            verdict.pvalue,
            "There is no evidence against calibration, and none for it.",
        ),
    )
    total = {"bin": "all", "range": "(0, 1]", "samples": preds.n}
    total |= {"term": round_sum(estimate.value), "term (5 digits)": rounded}
    tables = (
        toy_table("samples", "Predictions for nine images, and their classes.", _sample_rows(preds), SAMPLES_LEGEND),
        toy_table(
            "nine",
            f"Computation of the ECE of {estimate.value:.6f} by bin; the paper states {PRINTED_ECE}.",
            [*bins, total],
            BINS_LEGEND,
        ),
    )
    panel = Panel(
        "ECE step by step: predicted and observed",
        "share",
        {name: {f"bin {bin_row['bin']}": bin_row[name] for bin_row in bins} for name in ("confidence", "accuracy")},
    )
    return Toy("nine samples", rows, tables, panel)


def _sample_rows(preds: Predictions) -> list[dict[str, Any]]:
    """One row per sample: probabilities, predicted and observed class, confidence, and bin."""
    (view,) = as_lens("confidence").views(preds)
    place = Uniform(BINS).fit(view).index(view.partition_values)
    return [
        {
            "sample": i + 1,
            **dict(zip(NINE_CLASSES, sample[:3], strict=True)),
            "predicted": NINE_CLASSES[int(np.argmax(sample[:3]))],
            "confidence": float(view.p[i]),
            "bin": int(place[i]) + 1,
            "observed": sample[3],
            "correct": int(view.y[i]),
        }
        for i, sample in enumerate(NINE_SAMPLES)
    ]


def _bin_rows(preds: Predictions) -> list[dict[str, Any]]:
    """One row per occupied bin: its samples, and what it adds to ECE."""
    (view,) = as_lens("confidence").views(preds)
    binned = BinnedError(Uniform(BINS)).bin_sums(view).binned
    assert binned.bin_index is not None
    rows = []
    for b, n, p, y in zip(binned.bin_index, binned.n, binned.p, binned.y, strict=True):
        adds = round_sum(n / preds.n * abs(p - y))
        rows.append(
            {
                "bin": str(b + 1),
                "range": f"({b / BINS:g}, {(b + 1) / BINS:g}]",
                "samples": int(n),
                "share": round_sum(n / preds.n),
                "accuracy": round_sum(y),
                "confidence": round_sum(p),
                "gap": round_sum(abs(p - y)),
                "term": adds,
                "term (5 digits)": round(adds, DIGITS),
            }
        )
    return rows


BIN_COUNTS = (1, 2, 5, 10, 15, 20, 100)

BIN_COUNTS_LEGEND = """bins: of equal width on [0, 1]. empty: bins without a sample, which contribute nothing.
single: bins with a single sample, whose accuracy is 0 or 1. most samples: largest number of samples in a bin. ECE:
for the same nine samples. noise floor: mean ECE of a calibrated model with the same predictions, over 999 draws."""


def bin_count_row(bins: int, seed: int) -> dict[str, Any]:
    """ECE and noise floor of the nine samples with this number of bins, and how the samples are distributed."""
    estimate = measure(nine_samples(), "ece", lens="confidence", bins=bins, rng=seed)
    bin_counts = nine_bin_counts(bins)
    return {
        "bins": bins,
        "empty": bin_counts.count(0),
        "single": bin_counts.count(1),
        "most samples": max(bin_counts),
        "ECE": round_sum(estimate.value),
        "noise floor": estimate.noise_floor,
    }


def more_bins_toy(seed: int) -> Toy:
    """ECE by number of bins of equal width: the first part of section 3.2 of Pavlovic (2025)."""
    lines = [bin_count_row(bins, seed) for bins in BIN_COUNTS]
    by_bins, bin_counts = {line["bins"]: line for line in lines}, nine_bin_counts(10)
    alone = " and ".join(str(b + 1) for b, n in enumerate(bin_counts) if n == 1)
    rows = (
        toy_row(
            "more bins",
            "ECE, 1 bin",
            None,
            by_bins[1]["ECE"],
            "Mean confidence compared with accuracy: over- and underconfidence cancel.",
        ),
        toy_row(
            "more bins",
            "ECE, 10 bins instead of 5",
            None,
            by_bins[10]["ECE"],
            f"Only the bins changed, and {by_bins[5]['ECE']:.3f} became {by_bins[10]['ECE']:.3f}.",
        ),
        toy_row("more bins", "empty bins, of 10", 5, by_bins[10]["empty"], "Half of the bins contribute nothing."),
        toy_row("more bins", "samples in bin 8, of 10", 1, bin_counts[7], "This bin contains one image."),
        toy_row(
            "more bins",
            "samples in bin 9, of 10",
            1,
            bin_counts[8],
            f"The paper states that bins 8 and 9 contain one sample each; for these nine samples, bins {alone} do.",
        ),
        toy_row(
            "more bins",
            "ECE, 100 bins",
            None,
            by_bins[100]["ECE"],
            "Every sample has its own bin: the distance of its confidence from 1 if correct, from 0 if not.",
        ),
        toy_row(
            "more bins",
            "noise floor, 100 bins",
            None,
            by_bins[100]["noise floor"],
            "About the same for a calibrated model: compare an ECE with its noise floor, and never compare different"
            " bins.",
        ),
    )
    low, high = (pick(line["ECE"] for line in lines) for pick in (min, max))
    sentence = f"The same nine samples: ECE from {low:.3f} to {high:.3f} by the number of bins."
    panel = Panel(
        "Dependence on the number of bins",
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

ADAPTIVE_LEGEND = """All measures named in the paper, for its nine samples. equal mass, 3: three bins of three samples.
sweep: the largest number of equal-mass bins for which accuracy increases with confidence. kernel density: no bins. ACE:
equal-mass bins for each class, averaged over classes; TACE: the same above a probability of 0.01. MacroCE: the mean
distance of confidence from 1 for correct and from 0 for wrong predictions, averaged over the two. noise floor: mean for
a calibrated model with the same predictions, over 999 draws; excess: value minus noise floor."""


def measure_samples(measure_name: str, seed: int) -> dict[str, Any]:
    """One of ADAPTIVE_MEASURES for the nine samples, with its noise floor."""
    estimator, settings = ADAPTIVE_MEASURES[measure_name]
    estimate = measure(nine_samples(), estimator, rng=seed, **settings)
    assert estimate.noise_floor is not None
    return {
        "measure": measure_name,
        "lens": estimate.lens,
        "value": round_sum(estimate.value),
        "noise floor": estimate.noise_floor,
        "excess": estimate.value - estimate.noise_floor,
    }


def adaptive_bins_toy(seed: int) -> Toy:
    """Adaptive bins and measures without bins: the other part of section 3.2 of Pavlovic (2025)."""
    lines = [measure_samples(name, seed) for name in ADAPTIVE_MEASURES]
    by_measure = {line["measure"]: line for line in lines}
    explanations = {
        ("ECE, 3 bins of three samples", "equal mass, 3"): (
            "No bin is empty or contains a single sample; the value differs again."
        ),
        ("ECE, sweep", "sweep"): (
            "The data determine the number of bins: the largest for which accuracy increases with confidence."
        ),
        ("ECE, kernel density", "kernel density"): "Without bins, a bandwidth has to be chosen.",
        ("ACE, 3 bins per class", "ACE, 3"): "All three probabilities of a sample are used, not only the largest.",
        ("MacroCE", "MacroCE"): ("It measures more than calibration: it is large even for a calibrated model."),
    }
    rows = tuple(
        toy_row("adaptive bins", what, None, by_measure[name]["value"], explanation)
        for (what, name), explanation in explanations.items()
    )
    low, high = (pick(line["value"] for line in lines) for pick in (min, max))
    excess = max(line["excess"] for line in lines)
    sentence = (
        f"Nine samples, {len(lines)} measures, from {low:.3f} to {high:.3f}; none exceeds the expected value of a"
        f" calibrated model by more than {excess:.3f}. With so few samples, no choice of bins gives a precise estimate."
    )
    panel = Panel(
        "Adaptive bins, or none",
        "value",
        {name: {line["measure"]: line[name] for line in lines} for name in ("value", "noise floor")},
    )
    return Toy("adaptive bins", rows, (toy_table("adaptive", sentence, lines, ADAPTIVE_LEGEND),), panel)


ANIMALS = ("cat",) * 7 + ("dog",) * 2 + ("toad",)
RATES = (0.7, 0.2, 0.1)  # frequencies of cat, dog and toad
ALWAYS, INFORMATIVE = "always predicts cat", "uses the image"

MAJORITY_LEGEND = """Ten images: 7 cats, 2 dogs, a toad. The first model predicts (0.7, 0.2, 0.1) for every image. The
second predicts 0.8 for the class it recognizes and 0.1 for each other class; it mistakes the toad for a cat. log loss
(nats), Brier: lower is better. resolution: reduction of the Brier score by distinguishing images; it is 0 for a
constant model."""


def majority_models() -> dict[str, Predictions]:
    """The predictions of both models for the same ten images."""
    classes = ("cat", "dog", "toad")
    informative = [[0.1, 0.8, 0.1] if animal == "dog" else [0.8, 0.1, 0.1] for animal in ANIMALS]
    return {
        ALWAYS: Predictions(ANIMALS, [RATES] * len(ANIMALS), classes=classes),
        INFORMATIVE: Predictions(ANIMALS, informative, classes=classes),
    }


def majority_scores(preds: Predictions) -> dict[str, float]:
    """ECE and other scores of a model."""
    return {
        "ECE": measure_value(preds, "ece", lens="confidence", bins=5),
        "accuracy": accuracy(preds),
        "log loss": measure_value(preds, "log_loss"),
        "Brier": measure_value(preds, "brier"),
        "resolution": brier_resolution(preds),
    }


def majority_toy() -> Toy:
    """A model with ECE 0 that provides no information, as in section 3.1 of Pavlovic (2025), and an informative one."""
    scores = {name: majority_scores(preds) for name, preds in majority_models().items()}
    always, informative = scores[ALWAYS], scores[INFORMATIVE]
    rows = (
        toy_row(
            "majority class",
            f"ECE: {ALWAYS}",
            0.0,
            always["ECE"],
            "Its confidence is 0.7 and it is correct in 7 of 10 cases: perfectly calibrated.",
        ),
        toy_row("majority class", f"accuracy: {ALWAYS}", None, always["accuracy"], "The share of cats."),
        toy_row(
            "majority class",
            f"resolution: {ALWAYS}",
            None,
            always["resolution"],
            "It does not distinguish images, so it provides no information.",
        ),
        toy_row(
            "majority class",
            f"ECE: {INFORMATIVE}",
            None,
            informative["ECE"],
            "Correct in 9 of 10 cases with confidence 0.8: underconfident, so it is the worse model by ECE alone.",
        ),
        toy_row(
            "majority class",
            f"log loss minus that of the other: {INFORMATIVE}",
            None,
            informative["log loss"] - always["log loss"],
            "A proper score detects which model is more informative: report it and the accuracy with every ECE.",
        ),
    )
    lines: list[dict[str, Any]] = [{"model": name, **model_scores} for name, model_scores in scores.items()]
    sentence = (
        f"ECE prefers the model that {ALWAYS} ({always['ECE']:g} compared with {informative['ECE']:.2g}); accuracy, log"
        " loss, Brier, and resolution prefer the other."
    )
    panel = Panel(
        "ECE 0, but uninformative",
        "ECE, accuracy, log loss, resolution",
        {name: _drawn_scores(model_scores) for name, model_scores in scores.items()},
    )
    return Toy("majority class", rows, (toy_table("majority", sentence, lines, MAJORITY_LEGEND),), panel)


def _drawn_scores(scores: dict[str, float]) -> dict[str, float]:
    """The scores in the figure."""
    return {name: scores[name] for name in ("ECE", "accuracy", "log loss", "resolution")}
