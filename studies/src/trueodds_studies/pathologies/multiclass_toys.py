"""Toy data sets about whole probability vectors: coarsened classifiers, six predictions, other classes, and votes."""

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
PICTURE_COUNTS = {  # how many of ten pictures of each kind show a cat, a dog, a toad
    ("bright", "near"): (8, 1, 1),
    ("bright", "far"): (6, 2, 2),
    ("dark", "near"): (2, 7, 1),
    ("dark", "far"): (2, 3, 5),
}
VISIBLE_FEATURES: Mapping[str, Sequence[int]] = {  # which of light and distance h keeps
    "light and distance (the optimum)": (0, 1),
    "light only": (0,),
    "distance only": (1,),
    "nothing": (),
}
OPTIMUM, NOTHING = "light and distance (the optimum)", "nothing"
EXAGGERATED = "the optimum, exaggerated"

COARSER_LEGEND = """40 images of four kinds, bright or dark, near or far, ten each. A model that uses only part of this
information predicts the class frequencies among all images that it cannot distinguish: g(X) = P[Y | h(X)]. predictions:
number of distinct predictions. error: ECE of whole vectors with one bin per prediction. confidence: mean largest
probability. resolution: reduction of the Brier score by distinguishing images. The last model ranks classes as the
optimum does and squares its probabilities."""


def picture_rows() -> tuple[list[tuple[str, str]], Array]:
    """The kind of each image, and its class, (n,)."""
    kinds = [kind for kind, shown in PICTURE_COUNTS.items() for _ in range(sum(shown))]
    return kinds, np.concatenate([np.repeat(np.arange(3), shown) for shown in PICTURE_COUNTS.values()])


def coarsen(keeps: Sequence[int]) -> Predictions:
    """The classifier P[Y | h(X)], where h keeps part of the information."""
    kinds, y = picture_rows()
    looks = [tuple(kind[i] for i in keeps) for kind in kinds]
    outcomes = np.eye(3)[y]
    rate = {look: outcomes[[other == look for other in looks]].mean(axis=0) for look in set(looks)}
    return Predictions(y, [rate[look] for look in looks])


def exaggerated() -> Predictions:
    """The optimum with squared probabilities: not a coarsening, and not calibrated."""
    optimum = coarsen(VISIBLE_FEATURES[OPTIMUM])
    assert optimum.y is not None
    squared = optimum.P**2
    return Predictions(optimum.y, squared / squared.sum(axis=1, keepdims=True))


def coarsened_scores(preds: Predictions) -> dict[str, Any]:
    """Calibration error and other scores."""
    return {
        "predictions": len(np.unique(preds.P, axis=0)),
        "error": distinct_ece(preds, "canonical"),
        "confidence": mean_confidence(preds),
        "accuracy": accuracy(preds),
        "log loss": measure_value(preds, "log_loss"),
        "resolution": brier_resolution(preds),
    }


def coarsened_classifier_toy() -> Toy:
    """Proposition 1 of Vaicenavicius et al. (2019)."""
    scores = {name: coarsened_scores(coarsen(keeps)) for name, keeps in VISIBLE_FEATURES.items()} | {
        EXAGGERATED: coarsened_scores(exaggerated())
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
    lines = [{"sees": name, **model_scores} for name, model_scores in scores.items()]
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


# Vaicenavicius et al. (2019), table 1: predictions, equally frequent, and the frequencies of the classes
SIX_PREDICTIONS = {
    (0.1, 0.3, 0.6): (0.2, 0.2, 0.6),
    (0.1, 0.6, 0.3): (0.0, 0.7, 0.3),
    (0.3, 0.1, 0.6): (0.2, 0.2, 0.6),
    (0.3, 0.6, 0.1): (0.4, 0.5, 0.1),
    (0.6, 0.1, 0.3): (0.7, 0.0, 0.3),
    (0.6, 0.3, 0.1): (0.5, 0.4, 0.1),
}
ROWS_PER_PREDICTION = 10  # rows of each prediction: every share of the table is a whole number of them
CALIBRATED_LENSES = (
    "confidence",
    "class:0",
    "class:1",
    "class:2",
)  # the lenses of which the paper says that all is well
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
    """Table 1 of the paper as rows."""
    labels = [
        np.repeat(np.arange(3), np.rint(ROWS_PER_PREDICTION * np.array(rate)).astype(int))
        for rate in SIX_PREDICTIONS.values()
    ]
    return Predictions(np.concatenate(labels), np.repeat(np.array(list(SIX_PREDICTIONS)), ROWS_PER_PREDICTION, axis=0))


def six_predictions_toy() -> Toy:
    """Table 1 of Vaicenavicius et al. (2019)."""
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
MEETS, MISSES = "q, calibrated", "q, miscalibrated"

VECTORS_LEGEND = """Two models for ten images of a road, with probability 0.9 for no creature; one image shows a person.
And two times ten images with the prediction q = (0.1, 0.2, 0.7). observed: number of images of each
class. confidence: error of the largest probability; classwise: of each class against the rest, mean over classes;
canonical: of the whole vector (half the sum of the absolute differences). The log loss is infinite if an observed class
had probability 0."""


def ten_pictures(predicted: Sequence[float], counts: Sequence[int]) -> Predictions:
    """Ten images with one prediction, and the number of images of each class."""
    return Predictions(np.repeat(np.arange(3), counts), [list(predicted)] * 10)


VECTOR_CASES = {
    PERSON: ((0.9, 0.1, 0.0), (9, 1, 0)),  # Vaicenavicius et al. (2019), introduction: no creature, person, animal
    ANIMAL: ((0.9, 0.0, 0.1), (9, 1, 0)),
    MEETS: ((0.1, 0.2, 0.7), (1, 2, 7)),  # Pavlovic (2025), section 3.3.1
    MISSES: ((0.1, 0.2, 0.7), (1, 5, 4)),
}


def other_classes_toy() -> Toy:
    """Section 3.3 of the paper."""
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
    """The errors of the cases, given by name, beside the published ones."""
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
            f"canonical: {MEETS}",
            0.0,
            results[MEETS]["canonical"],
            "The class frequencies equal the prediction q: calibrated.",
        ),
        toy_row(
            "only the maximum",
            f"canonical: {MISSES}",
            None,
            results[MISSES]["canonical"],
            "The class frequencies are (0.1, 0.5, 0.4): 0.3 of the probability is on the wrong class.",
        ),
    )


def _format_list(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"


PICTURE_VOTES = (1, 2, 7)  # of ten people; the vector of Pavlovic (2025), section 3.3.3
VOTE_PREDICTIONS = {
    "as people": (0.1, 0.2, 0.7),
    "two swapped": (0.2, 0.1, 0.7),
    "reversed": (0.7, 0.2, 0.1),
    "same order, overconfident": (0.01, 0.04, 0.95),
    "same order, underconfident": (0.3, 0.33, 0.37),
}
VOTE_MEASURES = {"EntCE": "entce", "RankCS": "rankcs", "DistCE": "distce"}

VOTES_LEGEND = """One image labeled by ten people: 1, 2, and 7 of them chose the three classes. EntCE: difference of the
entropies (nats), which measure uncertainty; 0 is best. RankCS: 1 if the classes are in the same order. DistCE: total
variation distance from the votes; 0 is best. against the majority: distance of the confidence from 1 if the majority
class is taken as the truth."""


def vote_scores(predicted: tuple[float, ...]) -> dict[str, float]:
    """The three measures of votes, and ECE against the majority."""
    preds, settled = (
        Predictions([PICTURE_VOTES], [predicted]),
        Predictions([max(range(3), key=PICTURE_VOTES.__getitem__)], [predicted]),
    )
    scores = {name: measure_value(preds, estimator) for name, estimator in VOTE_MEASURES.items()}
    return scores | {"against the majority": measure_value(settled, "ece", lens="confidence")}


def votes_toy() -> Toy:
    """Section 3.3.3 of the paper."""
    scores = {name: vote_scores(predicted) for name, predicted in VOTE_PREDICTIONS.items()}
    lines: list[dict[str, Any]] = [
        {"case": name, "predicted": str(VOTE_PREDICTIONS[name]), **case_scores} for name, case_scores in scores.items()
    ]
    undetected_by_entropy = [case["DistCE"] for case in scores.values() if case["EntCE"] == 0 and case["DistCE"] > 0]
    undetected_by_rank = [case["DistCE"] for case in scores.values() if case["RankCS"] == 1 and case["DistCE"] > 0]
    sentence = (
        f"Predictions with EntCE 0 are up to {max(undetected_by_entropy):g} from the votes, and predictions in the"
        f" order of the votes up to {max(undetected_by_rank):g}: DistCE detects both."
    )
    panel = Panel(
        "Agreement with annotators",
        "EntCE, RankCS, DistCE",
        {m: {name: case_scores[m] for name, case_scores in scores.items()} for m in VOTE_MEASURES},
    )
    return Toy("people", _vote_rows(scores), (toy_table("people", sentence, lines, VOTES_LEGEND),), panel)


def _vote_rows(scores: Mapping[str, Mapping[str, float]]) -> tuple[Row, ...]:
    """The scores of the predictions, given by name, beside the published ones."""
    as_people, swapped, reversed_order, overconfident = (scores[name] for name in list(VOTE_PREDICTIONS)[:4])
    return (
        toy_row(
            "people",
            "EntCE: two swapped",
            0.0,
            swapped["EntCE"],
            "The same uncertainty between different classes: entropy does not distinguish them.",
        ),
        toy_row(
            "people", "DistCE: two swapped", None, swapped["DistCE"], "A tenth of the probability is on other classes."
        ),
        toy_row(
            "people",
            "EntCE: reversed",
            0.0,
            reversed_order["EntCE"],
            "The least likely class according to people is predicted as the most likely, and entropy does not"
            " detect it.",
        ),
        toy_row("people", "DistCE: reversed", None, reversed_order["DistCE"], "Six tenths are on other classes."),
        toy_row(
            "people",
            "RankCS: same order, overconfident",
            1.0,
            overconfident["RankCS"],
            "The order is correct, so the score is 1, whatever the confidence.",
        ),
        toy_row(
            "people",
            "DistCE: same order, overconfident",
            None,
            overconfident["DistCE"],
            "A quarter is on other classes: the model is overconfident.",
        ),
        toy_row("people", "DistCE: as people", 0.0, as_people["DistCE"], "Calibrated to human uncertainty."),
        toy_row(
            "people",
            "ECE against the majority: as people",
            None,
            as_people["against the majority"],
            "If the majority is taken as the truth, the model that agrees with people appears underconfident by 0.3.",
        ),
    )
