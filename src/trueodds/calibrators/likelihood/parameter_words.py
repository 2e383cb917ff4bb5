"""What does a reader who knows no statistics take from shift and slope, and where do the numbers come from?"""

from __future__ import annotations

import numpy as np

from trueodds.calibrators.likelihood.certainty import STD_ERROR_METHODS, Certainty
from trueodds.calibrators.likelihood.likeliest import MANY
from trueodds.core.results import figure
from trueodds.core.typing import Array

MIN_UNITS = 10  # equal units for each number of a class, below which their number is said

_WITHHELD = {
    "infinite": "no finite δ and γ fit best, so something slight decided them.",
    "absent": "some classes never came.",
    "untold": "the rows take too few values to tell every shift from its slope.",
    "many": f"beyond {MANY // 2 + 1} classes the fit does without the curvature that gives them.",
    "few": "there are no more independent rows, or clusters, than parameters, or a few of them tell nearly all. Bring more of them.",
    "far": "with votes or clusters they need rows or clusters left out one by one, which sums over a source do not tell. Fit rows in memory for them.",
}
_CURABLE = ("infinite", "absent", "untold")  # by a penalty
_SANDWICH = {
    "weights": "With weights standard errors are those of the sandwich, and no likelihood ratio is shown: weights say which rows matter, not how many there are.",
    "votes": "With votes standard errors are those of rows left out one by one, and no likelihood ratio is shown: how many people stand behind a share is not known.",
    "clusters": "With clusters standard errors are those of clusters left out one by one, and no likelihood ratio is shown: rows of a cluster do not count one by one.",
}


def describe_slope(gamma: float, ends: Array) -> str:
    """Whether the odds are too extreme or too timid, as far as the interval tells."""
    low, high = ends
    if high <= 0:
        return "the model points the wrong way: what it calls likelier came less often"
    if low > 1:
        return "the model is underconfident (its odds are too timid)"
    if high < 1 and low > 0:
        return "the model is overconfident (its odds are too extreme)"
    if high < 1:
        known = "tells the two apart no better than chance would" if gamma > 0 else "points the wrong way"
        return f"the model is overconfident, and perhaps {known}"
    if low <= 0:
        return "its confidence may be just right (γ = 1) or worth nothing (γ = 0): these rows cannot tell"
    return "chance may explain that its confidence is not exactly right"


def spoken(value: float, ends: Array, times: str = "") -> str:
    """`0.68 [0.63, 0.74]`, with more decimals where an end would else read as 1."""
    numbers = (value, *ends)
    decimals = next(
        (d for d in range(2, 6) if not any(round(x, d) == 1 and abs(x - 1) > 1e-9 for x in ends)),
        6,
    )
    shown = [f"{x:.{decimals}f}" if 0.1 <= abs(x) < 1000 else f"{x:.2g}" for x in numbers]
    return f"{shown[0]}{times} [{shown[1]}, {shown[2]}]"


def digits(x: float) -> str:
    """Three decimals, or three digits of what is tiny or huge."""
    return f"{x:.3f}" if 0.01 <= abs(x) < 1000 else f"{x:#.3g}"


def chance(p: float) -> str:
    """A p-value."""
    return figure(p) if not p < 1e-300 else "<1e-300"


def belief(p: float) -> str:
    """A probability that is never quite 0 or 1."""
    return ">0.9999" if p > 0.9999 else "<0.0001" if p < 0.0001 else figure(p)


def footing(certainty: Certainty | None, method: str) -> list[str]:
    """How sure the numbers are made, and the evidence against no change."""
    if certainty is None:
        return ["No standard errors are kept with this map. Fit it again for them."]
    if certainty.errors not in STD_ERROR_METHODS:
        sentences = [f"No standard errors: {_WITHHELD[certainty.errors]}{_remedy(certainty, method)}"]
    else:
        sentences = [
            "Each interval is for one number by itself, on the rows of the fit; Holm's p allows for all classes."
        ]
    if certainty.errors in _SANDWICH:
        sentences.append(_SANDWICH[certainty.errors])
    if certainty.units is not None and certainty.units < MIN_UNITS * 2 * _classes(certainty):
        kind = "clusters" if certainty.errors == "clusters" else "rows"
        sentences.append(
            f"They rest on as much as {certainty.units:.3g} equal {kind} would tell, which is little: intervals and tests are by t and F with so few, and are wide for it."
        )
    if certainty.penalized and certainty.errors in STD_ERROR_METHODS:
        inside = "" if certainty.errors == "curvature" else ", in the sandwich too"
        sentences.append(
            f"With a penalty standard errors are by the penalized curvature{inside}, about parameters that are drawn towards no change; no likelihood ratio is shown, as χ² is no law for it."
        )
    if certainty.ratio is not None:
        sentences.append(
            f"Against no change (every δ = γ = 1), on the rows of the fit: likelihood ratio {figure(certainty.ratio)}, χ² with {certainty.rank:,} degrees of freedom, p = {chance(certainty.pvalue)}; posterior probability of calibration {belief(certainty.posterior)} by BIC, from even odds. Whether the map holds, other rows must tell."
        )
    return sentences


def _classes(certainty: Certainty) -> int:
    return 0 if certainty.covariance is None else len(certainty.covariance)


def _remedy(certainty: Certainty, method: str) -> str:
    """What gives standard errors: a penalty where there was none and it can."""
    if certainty.errors not in _CURABLE:
        return ""
    if certainty.penalized:
        return " Bring rows with other predictions."
    same = "" if method == "mcllo" else ", the same map with a penalty,"
    return f' to.fit(preds, "mcllo", penalty=0.5){same} has finite parameters, with standard errors.'


def ends_of(value: Array, errors: Array, within: float) -> Array:
    """Both ends of each interval, (K − 1, 2)."""
    return np.asarray(value[:, None] + np.array([-within, within]) * errors[:, None])
