"""Does a model doubt as people do, and which measure would tell?"""

from __future__ import annotations

from typing import Any

from trueodds.data.predictions import Predictions
from trueodds_studies.toys.base import Panel, Toy, row, table, value

VOTES = (1, 2, 7)  # of ten people; the vector of Pavlovic (2025), section 3.3.3
PREDICTIONS = {
    "as people": (0.1, 0.2, 0.7),
    "two swapped": (0.2, 0.1, 0.7),
    "the other way round": (0.7, 0.2, 0.1),
    "same order, surer": (0.01, 0.04, 0.95),
    "same order, less sure": (0.3, 0.33, 0.37),
}
MEASURES = {"EntCE": "entce", "RankCS": "rankcs", "DistCE": "distce"}

LEGEND = """One picture that ten people were asked about: 1, 2 and 7 of them chose the three classes. EntCE: difference of the two entropies (nats),
how much each is in doubt; 0 is best. RankCS: 1 if the classes are in the same order. DistCE: how much probability lies elsewhere than
the votes (total variation); 0 is best. against the majority: confidence and its distance from 1, if the class of most votes is the truth."""


def measure_scores(predicted: tuple[float, ...]) -> dict[str, float]:
    """The three human measures, and ECE if the majority's word were the truth."""
    preds, settled = Predictions([VOTES], [predicted]), Predictions([max(range(3), key=VOTES.__getitem__)], [predicted])
    scores = {name: value(preds, estimator) for name, estimator in MEASURES.items()}
    return scores | {"against the majority": value(settled, "ece", lens="confidence")}


def people() -> Toy:
    """The text's section 3.3.3."""
    scores = {name: measure_scores(predicted) for name, predicted in PREDICTIONS.items()}
    agrees, swapped, turned, surer = (scores[name] for name in list(PREDICTIONS)[:4])
    rows = (
        row("people", "EntCE: two swapped", 0.0, swapped["EntCE"],
            "As much doubt, between other classes: entropy does not see which."),
        row("people", "DistCE: two swapped", None, swapped["DistCE"], "A tenth of the probability lies elsewhere."),
        row("people", "EntCE: the other way round", 0.0, turned["EntCE"],
            "What people find least likely is said to be most likely, and entropy sees nothing at all."),
        row("people", "DistCE: the other way round", None, turned["DistCE"], "Six tenths lie elsewhere."),
        row("people", "RankCS: same order, surer", 1.0, surer["RankCS"],
            "The order is right, so the score is full, however sure the model is."),
        row("people", "DistCE: same order, surer", None, surer["DistCE"], "A quarter lies elsewhere: the model is too sure."),
        row("people", "DistCE: as people", 0.0, agrees["DistCE"], "Calibrated to human uncertainty."),
        row("people", "ECE against the majority's word: as people", None, agrees["against the majority"],
            "If the majority is taken for the truth, the model that doubts as people do looks unsure by 0.3."),
    )  # fmt: skip
    lines: list[dict[str, Any]] = [
        {"case": name, "said": str(PREDICTIONS[name]), **case_scores} for name, case_scores in scores.items()
    ]
    blind = [
        case_scores["DistCE"]
        for case_scores in scores.values()
        if case_scores["EntCE"] == 0 and case_scores["DistCE"] > 0
    ]
    ranked = [
        case_scores["DistCE"]
        for case_scores in scores.values()
        if case_scores["RankCS"] == 1 and case_scores["DistCE"] > 0
    ]
    sentence = (
        f"Predictions with EntCE 0 are up to {max(blind):g} away from people's votes, and predictions in people's order up "
        f"to {max(ranked):g}: DistCE sees both."
    )
    panel = Panel(
        "As people doubt",
        "EntCE, RankCS, DistCE",
        {m: {name: case_scores[m] for name, case_scores in scores.items()} for m in MEASURES},
    )
    return Toy("people", rows, (table("people", sentence, lines, LEGEND),), panel)
