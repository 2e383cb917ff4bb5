"""Do bins that hold equally many samples, or no bins at all, settle what the number is?"""

from __future__ import annotations

from typing import Any

from trueodds.api.verbs import measure
from trueodds_studies.toys.base import Panel, Toy, row, table, tidy
from trueodds_studies.toys.nine import samples

CONFIDENCE = {"lens": "confidence"}
MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
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

LEGEND = """Every measure that the text names, on its nine samples. equal mass, 3: three bins of three samples. sweep: as many equal-mass bins as
let accuracy rise with confidence. kernel density: no bins. ACE: equal-mass bins for each class, averaged over classes; TACE: the same
above a probability of 0.01. MacroCE: the mean distance of confidence from 1 where the model is right and from 0 where it is wrong,
averaged over the two. noise floor: the mean of a calibrated model that says the same, over 999 draws; over it: how much is above that."""


def measure_samples(how: str, seed: int) -> dict[str, Any]:
    """The nine samples by one measure."""
    estimator, settings = MEASURES[how]
    estimate = measure(samples(), estimator, rng=seed, **settings)
    assert estimate.noise_floor is not None
    return {
        "measure": how, "looks at": estimate.lens, "value": tidy(estimate.value), "noise floor": estimate.noise_floor,
        "over it": estimate.value - estimate.noise_floor,
    }  # fmt: skip


def adaptive(seed: int) -> Toy:
    """The rest of the text's section 3.2."""
    lines = [measure_samples(how, seed) for how in MEASURES]
    by_measure = {line["measure"]: line for line in lines}
    rows = (
        row("adaptive bins", "ECE, 3 bins of three samples", None, by_measure["equal mass, 3"]["value"],
            "No bin is empty and none holds one sample; the number is another again."),
        row("adaptive bins", "ECE, sweep", None, by_measure["sweep"]["value"],
            "The data choose the number of bins: as many as leave accuracy rising with confidence."),
        row("adaptive bins", "ECE, kernel density", None, by_measure["kernel density"]["value"],
            "Without bins there is a bandwidth to choose."),
        row("adaptive bins", "ACE, 3 bins per class", None, by_measure["ACE, 3"]["value"],
            "All three probabilities of a sample count here, not the largest alone."),
        row("adaptive bins", "MacroCE", None, by_measure["MacroCE"]["value"],
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
    return Toy("adaptive bins", rows, (table("adaptive", sentence, lines, LEGEND),), panel)
