"""Toy data set of one image with ten votes: which measures of votes detect that predictions differ from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.data.predictions import Predictions
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.pathologies.toy import Panel, Toy, measure_value, toy_row, toy_table

PICTURE_VOTES = (1, 2, 7)  # of ten people for three classes; from Pavlovic (2025), section 3.3.3
VOTE_PREDICTIONS = {
    "as the votes": (0.1, 0.2, 0.7),
    "two swapped": (0.2, 0.1, 0.7),
    "reversed": (0.7, 0.2, 0.1),
    "same order, overconfident": (0.01, 0.04, 0.95),
    "same order, underconfident": (0.3, 0.33, 0.37),
}
VOTE_MEASURES = {"EntCE": "entce", "RankCS": "rankcs", "DistCE": "distce"}  # name and estimator

VOTES_LEGEND = """One image labeled by ten people: 1, 2, and 7 of them chose the three classes. EntCE: difference of the
entropies (nats), which measure uncertainty; 0 is best. RankCS: 1 if the classes are in the same order. DistCE: total
variation distance from the votes; 0 is best. against the majority: distance of the confidence from 1 if the majority
class is taken as the truth."""


def vote_scores(predicted: tuple[float, ...]) -> dict[str, float]:
    """The three measures of votes, and ECE against the class with the most votes, for one prediction."""
    preds = Predictions([PICTURE_VOTES], [predicted])
    majority_class = PICTURE_VOTES.index(max(PICTURE_VOTES))
    majority_preds = Predictions([majority_class], [predicted])
    scores = {name: measure_value(preds, estimator) for name, estimator in VOTE_MEASURES.items()}
    return scores | {"against the majority": measure_value(majority_preds, "ece", lens="confidence")}


def votes_toy() -> Toy:
    """Agreement with annotators by one measure and not by another: section 3.3.3 of Pavlovic (2025)."""
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
    """The rows of the table of the study from the scores of each prediction."""
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
        toy_row("people", "DistCE: as the votes", 0.0, as_people["DistCE"], "Calibrated to human uncertainty."),
        toy_row(
            "people",
            "ECE against the majority: as the votes",
            None,
            as_people["against the majority"],
            "If the majority is taken as the truth, the model that agrees with people appears underconfident by 0.3.",
        ),
    )
