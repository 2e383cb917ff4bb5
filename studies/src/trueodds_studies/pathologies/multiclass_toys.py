"""Toy data sets of several classes: coarsened classifiers, six predictions, and equal confidence with other vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.ranked import accuracy
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.pathologies.toy import (
    Panel,
    Toy,
    brier_resolution,
    distinct_ece,
    mean_confidence,
    measure_value,
    toy_row,
    toy_table,
)

PICTURE_CLASSES = ("cat", "dog", "toad")
PICTURE_COUNTS = {  # number of cats, dogs and toads in ten pictures of each kind
    ("bright", "near"): (8, 1, 1),
    ("bright", "far"): (6, 2, 2),
    ("dark", "near"): (2, 7, 1),
    ("dark", "far"): (2, 3, 5),
}
VISIBLE_FEATURES: Mapping[
    str, Sequence[int]
] = {  # by model: the indices of the features (light, distance) that it uses
    "light and distance (the optimum)": (0, 1),
    "light only": (0,),
    "distance only": (1,),
    "nothing": (),
}
OPTIMUM, NOTHING = "light and distance (the optimum)", "nothing"
EXAGGERATED = "the optimum, overconfident"

COARSER_LEGEND = """40 images of four kinds, bright or dark, near or far, ten each. A model that uses only part of this
information predicts the class frequencies among all images that it cannot distinguish: g(X) = P[Y | h(X)]. predictions:
number of distinct predictions. error: ECE of whole vectors with one bin per prediction. confidence: mean largest
probability. resolution: reduction of the Brier score by distinguishing images. The last model ranks classes as the
optimum does and squares its probabilities."""


def picture_rows() -> tuple[list[tuple[str, str]], Array]:
    """The kind (light and distance) of each image, and its class, (n,)."""
    kinds = [kind for kind, shown in PICTURE_COUNTS.items() for _ in range(sum(shown))]
    return kinds, np.concatenate([np.repeat(np.arange(3), shown) for shown in PICTURE_COUNTS.values()])


def coarsen(features: Sequence[int]) -> Predictions:
    """The classifier P[Y | h(X)], where h(X) are the features with these indices."""
    kinds, y = picture_rows()
    visible = [tuple(kind[i] for i in features) for kind in kinds]
    outcomes = np.eye(3)[y]
    frequencies = {}
    for h in set(visible):
        mask = [other == h for other in visible]
        frequencies[h] = outcomes[mask].mean(axis=0)
    return Predictions(y, [frequencies[h] for h in visible])


def square_optimum() -> Predictions:
    """The optimum with squared probabilities: not a coarsening, and not calibrated."""
    optimum = coarsen(VISIBLE_FEATURES[OPTIMUM])
    assert optimum.y is not None
    squared = optimum.P**2
    return Predictions(optimum.y, squared / squared.sum(axis=1, keepdims=True))


def coarsened_scores(preds: Predictions) -> dict[str, Any]:
    """Calibration error of whole vectors and other scores of a classifier."""
    return {
        "predictions": len(np.unique(preds.P, axis=0)),
        "error": distinct_ece(preds, "canonical"),
        "confidence": mean_confidence(preds),
        "accuracy": accuracy(preds),
        "log loss": measure_value(preds, "log_loss"),
        "resolution": brier_resolution(preds),
    }


def coarsened_classifier_toy() -> Toy:
    """Many calibrated classifiers of different quality: Proposition 1 of Vaicenavicius et al. (2019)."""
    scores = {name: coarsened_scores(coarsen(features)) for name, features in VISIBLE_FEATURES.items()} | {
        EXAGGERATED: coarsened_scores(square_optimum())
    }
    explanations = {
        OPTIMUM: "It uses all information: the best possible model, and calibrated.",
        "light only": "It uses less information and is less confident: as calibrated as the optimum.",
        "distance only": "Different information, also calibrated; calibration does not rank the two.",
        NOTHING: "A single prediction for all images: calibrated and uninformative.",
    }
    rows = [
        toy_row("many calibrated", f"error: uses {name}", 0.0, scores[name]["error"], explanation)
        for name, explanation in explanations.items()
    ]
    rows.append(
        toy_row(
            "many calibrated",
            f"error: {EXAGGERATED}",
            None,
            scores[EXAGGERATED]["error"],
            "It predicts the same classes as the optimum with higher confidence, but is miscalibrated.",
        )
    )
    lines = [{"information": name, **model_scores} for name, model_scores in scores.items()]
    sentence = (
        f"Four models with an error of {max(scores[name]['error'] for name in VISIBLE_FEATURES):g}, log loss from"
        f" {scores[OPTIMUM]['log loss']:.3f} to {scores[NOTHING]['log loss']:.3f}: calibration alone does not determine"
        " the better model."
    )
    panel = Panel(
        "Many calibrated classifiers",
        "error, confidence, resolution",
        {what: {name: scores[name][what] for name in scores} for what in ("error", "confidence", "resolution")},
    )
    return Toy("many calibrated", tuple(rows), (toy_table("coarser", sentence, lines, COARSER_LEGEND),), panel)


# Vaicenavicius et al. (2019), table 1: predictions, which are equally frequent, and the true class probabilities
SIX_PREDICTIONS = {
    (0.1, 0.3, 0.6): (0.2, 0.2, 0.6),
    (0.1, 0.6, 0.3): (0.0, 0.7, 0.3),
    (0.3, 0.1, 0.6): (0.2, 0.2, 0.6),
    (0.3, 0.6, 0.1): (0.4, 0.5, 0.1),
    (0.6, 0.1, 0.3): (0.7, 0.0, 0.3),
    (0.6, 0.3, 0.1): (0.5, 0.4, 0.1),
}
ROWS_PER_PREDICTION = 10  # probabilities in the table are tenths, so that frequencies can be equal to them
CALIBRATED_LENSES = ("confidence", "class:0", "class:1", "class:2")  # calibrated according to the paper
OTHER_LENSES = ("rank:2", "rank:3", "top-2", "groups:[[0],[1,2]]", "groups:[[0,1],[2]]", "groups:[[0,2],[1]]")

SIX_LEGEND = """60 rows, ten of each prediction, with exactly the class frequencies of the table in the paper. error:
total variation distance between the prediction and the class frequencies (half the sum of the absolute differences),
which the canonical lens averages."""

LENS_EXPLANATIONS = {
    "confidence": "The first choice always has probability 0.6 and is correct in 6 of 10 cases.",
    "class:0": "When the first class has probability 0.1, its mean frequency is 0.1: 0.2 and 0.0 cancel.",
    "class:1": "The same for the second class.",
    "class:2": "And for the third: every class by itself is calibrated.",
    "rank:2": "Second choices are calibrated.",
    "rank:3": "Third choices are calibrated, too.",
    "top-2": "So are the first two together.",
    "groups:[[0],[1,2]]": "Merging classes does not reveal the error.",
    "groups:[[0,1],[2]]": "The same for this grouping.",
    "groups:[[0,2],[1]]": "And for this one.",
    "canonical": "Only the whole vector reveals it: each of the six predictions has an error of one tenth.",
}


def six_predictions() -> Predictions:
    """60 rows with the six predictions of table 1 and its class frequencies."""
    labels = [
        np.repeat(np.arange(3), np.rint(ROWS_PER_PREDICTION * np.array(rate)).astype(int))
        for rate in SIX_PREDICTIONS.values()
    ]
    return Predictions(np.concatenate(labels), np.repeat(np.array(list(SIX_PREDICTIONS)), ROWS_PER_PREDICTION, axis=0))


def six_predictions_toy() -> Toy:
    """Six predictions whose error only the canonical lens detects: table 1 of Vaicenavicius et al. (2019)."""
    preds = six_predictions()
    errors = {lens: distinct_ece(preds, lens) for lens in (*CALIBRATED_LENSES, *OTHER_LENSES, "canonical")}
    rows = tuple(
        toy_row(
            "six predictions",
            f"error: {lens}",
            0.0 if lens in CALIBRATED_LENSES else None,
            error,
            LENS_EXPLANATIONS[lens],
        )
        for lens, error in errors.items()
    )
    lines: list[dict[str, Any]] = [
        {
            "predicted": str(predicted),
            "observed": str(true_probs),
            "error": distinct_ece(preds[(preds.P == predicted).all(axis=1)], "canonical"),
        }
        for predicted, true_probs in SIX_PREDICTIONS.items()
    ]
    sentence = (
        f"Six predictions, {len(errors) - 1} lenses with an error of at most"
        f" {max(errors[lens] for lens in (*CALIBRATED_LENSES, *OTHER_LENSES)):g}, and the canonical lens with an error"
        f" of {errors['canonical']:g}."
    )
    panel = Panel("Six predictions by lens", "error", {"error": errors})
    return Toy("six predictions", rows, (toy_table("six", sentence, lines, SIX_LEGEND),), panel)


VECTOR_LENSES = ("confidence", "classwise", "canonical")
PERSON, ANIMAL = "0.1 on person", "0.1 on animal"
CALIBRATED, MISCALIBRATED = "q, calibrated", "q, miscalibrated"

VECTORS_LEGEND = """Two models for ten images of a road, with probability 0.9 for no creature; one image shows a person.
And two times ten images with the prediction q = (0.1, 0.2, 0.7). observed: number of images of each
class. confidence: error of the largest probability; classwise: of each class against the rest, mean over classes;
canonical: of the whole vector (half the sum of the absolute differences). The log loss is infinite if an observed class
had probability 0."""


def ten_pictures(predicted: Sequence[float], counts: Sequence[int]) -> Predictions:
    """Ten images with one prediction, and the number of images of each class."""
    return Predictions(np.repeat(np.arange(3), counts), [list(predicted)] * 10)


VECTOR_CASES = {  # by name: the prediction, and the number of images of each class
    PERSON: ((0.9, 0.1, 0.0), (9, 1, 0)),  # Vaicenavicius et al. (2019), introduction: no creature, person, animal
    ANIMAL: ((0.9, 0.0, 0.1), (9, 1, 0)),
    CALIBRATED: ((0.1, 0.2, 0.7), (1, 2, 7)),  # Pavlovic (2025), section 3.3.1
    MISCALIBRATED: ((0.1, 0.2, 0.7), (1, 5, 4)),
}


def other_classes_toy() -> Toy:
    """Equal confidence with different vectors: section 3.3 of Pavlovic (2025)."""
    results: dict[str, dict[str, Any]] = {}
    for name, (predicted, counts) in VECTOR_CASES.items():
        preds = ten_pictures(predicted, counts)
        errors = {lens: distinct_ece(preds, lens) for lens in VECTOR_LENSES}
        results[name] = {
            "predicted": _format_list(predicted),
            "observed": _format_list(counts),
            **errors,
            "log loss": measure_value(preds, "log_loss"),
        }
    lines = [{"case": name, **result} for name, result in results.items()]
    sentence = (
        f"Two models with ECE {results[PERSON]['confidence']:g} for the confidence; one of them has the remaining"
        f" probability on the wrong class, which the classwise error ({results[ANIMAL]['classwise']:.3f}) and the"
        f" canonical one ({results[ANIMAL]['canonical']:.1f}) detect."
    )
    panel = Panel(
        "Same confidence, different vectors",
        "error",
        {lens: {name: results[name][lens] for name in results} for lens in VECTOR_LENSES},
    )
    return Toy(
        "only the maximum",
        _other_classes_rows(results),
        (toy_table("vectors", sentence, lines, VECTORS_LEGEND),),
        panel,
    )


def _other_classes_rows(results: Mapping[str, Mapping[str, Any]]) -> tuple[Row, ...]:
    """The rows of the table of the study from the errors of each case."""
    return (
        toy_row(
            "only the maximum",
            f"confidence: {PERSON}",
            None,
            results[PERSON]["confidence"],
            "No creature has probability 0.9 and is observed in 9 of 10 cases.",
        ),
        toy_row(
            "only the maximum",
            f"confidence: {ANIMAL}",
            None,
            results[ANIMAL]["confidence"],
            "The same for ECE, which ignores the distribution of the remaining probability.",
        ),
        toy_row(
            "only the maximum",
            f"classwise: {ANIMAL}",
            None,
            results[ANIMAL]["classwise"],
            "Visible class by class: a person was observed although predicted with probability 0, and no animal.",
        ),
        toy_row(
            "only the maximum",
            f"canonical: {ANIMAL}",
            None,
            results[ANIMAL]["canonical"],
            "A tenth of the probability is on the wrong class; a car would brake for the wrong creature.",
        ),
        toy_row(
            "only the maximum",
            f"canonical: {CALIBRATED}",
            0.0,
            results[CALIBRATED]["canonical"],
            "The class frequencies equal the prediction q: calibrated.",
        ),
        toy_row(
            "only the maximum",
            f"canonical: {MISCALIBRATED}",
            None,
            results[MISCALIBRATED]["canonical"],
            "The class frequencies are (0.1, 0.5, 0.4): 0.3 of the probability is on the wrong class.",
        ),
    )


def _format_list(numbers: Sequence[float]) -> str:
    """Numbers in parentheses."""
    return f"({', '.join(f'{number:g}' for number in numbers)})"
