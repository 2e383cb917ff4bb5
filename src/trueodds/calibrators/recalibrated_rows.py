"""What a recalibration changes in the rows: their predicted classes, and their held-out probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from trueodds.calibrators._glm.log_probabilities import Probabilities, to_probabilities
from trueodds.calibrators.choose import CandidateChoice
from trueodds.calibrators.cross_validation import accuracy, count_label_flips
from trueodds.core.typing import Array


@dataclass(frozen=True, slots=True)
class PredictedClasses:
    """The effect of the applied map on the predicted classes of all rows."""

    label_flips: int  # rows whose predicted class the map changes
    accuracy_before: float
    accuracy_after: float  # cross-fitted, because the map was fitted to the rows

    @classmethod
    def compare_predictions(
        cls, P: Probabilities, Q: Array, Y: Array, w: Array, choice: CandidateChoice
    ) -> PredictedClasses:
        """Compare the predicted classes of P with those of the applied map, Q."""
        p = to_probabilities(P)
        label_flips, accuracy_before = count_label_flips(p, Q), accuracy(p, Y, w)
        change = next(candidate.accuracy_change for candidate in choice.candidates if candidate.chosen)
        accuracy_after = accuracy_before + (change or 0.0) if label_flips else accuracy_before
        return cls(label_flips, accuracy_before, accuracy_after)


@dataclass(frozen=True, slots=True)
class HeldOutProbabilities:
    """Recalibrated probabilities of rows that were used neither to fit nor to choose their maps."""

    rows: Array  # (m,) numbers of the compared rows
    P: Array  # (m, K) their cross-fitted probabilities, whose gain in log loss was tested
