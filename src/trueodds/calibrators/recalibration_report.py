"""The report of a recalibration by `auto`: candidates, choice, confirmation, and notes that explain the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from trueodds.calibrators._glm.log_probabilities import Probabilities, to_probabilities
from trueodds.calibrators.base import CalibrationMap, to_accepted_input
from trueodds.calibrators.choose import CandidateChoice
from trueodds.calibrators.cross_validation import (
    CONFIRMED,
    NO_GAIN,
    NOT_ENOUGH_ROWS,
    PROCEDURE,
    TRAINING_ROWS,
    Confirmation,
    accuracy,
    count_label_flips,
)
from trueodds.core.errors import Note
from trueodds.core.formatting import (
    format_number,
    format_percent_in_text,
    format_pvalue_clause,
    format_range,
    format_share,
)
from trueodds.core.json_files import strict_json
from trueodds.core.printable import to_printable
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK

_NOT_CONFIRMED_CODE = "TN543"  # of the note on a gain that needs more rows to be confirmed


@dataclass(frozen=True, slots=True)
class PredictedClasses:
    """The effect of the applied map on the predicted classes of all rows."""

    label_flips: int  # rows whose predicted class the map changes
    accuracy_before: float
    accuracy_after: float  # cross-fitted, because the map was fitted to the rows

    @classmethod
    def compare_predictions(
        cls, P: Probabilities, applied_map: CalibrationMap, Y: Array, w: Array, choice: CandidateChoice
    ) -> PredictedClasses:
        """Compare the predicted classes of P (n, K) with those after the map, for a block of rows at a time.

        Y (n, K) are outcome shares and w (n,) weights. The change of the accuracy is that of the chosen candidate.
        """

        def count_flips_of_rows(start: int, stop: int) -> int:
            rows = P[start:stop]
            return count_label_flips(to_probabilities(rows), applied_map.apply(to_accepted_input(applied_map, rows)))

        label_flips = sum(map_blocks(count_flips_of_rows, len(P), max(1, VALUES_PER_ROW_BLOCK // P.shape[1])))
        accuracy_before = accuracy(to_probabilities(P), Y, w)
        change = next(candidate.accuracy_change for candidate in choice.candidates if candidate.chosen)
        accuracy_after = accuracy_before + (change or 0.0) if label_flips else accuracy_before
        return cls(label_flips, accuracy_before, accuracy_after)


@dataclass(frozen=True, slots=True)
class HeldOutProbabilities:
    """Recalibrated probabilities of rows that were used neither to fit nor to choose their maps."""

    rows: Array  # (m,) indices of the rows on which the candidates were compared
    P: Array  # (m, K) their cross-fitted probabilities, whose gain in log loss was tested


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Report of `auto`: candidates, choice, confirmation on held-out rows, and the map that was applied."""

    choice: CandidateChoice | None  # None where the rows were too few to choose
    confirmation: Confirmation | None  # of the whole procedure
    applied: str  # name of the calibrator whose map is applied
    map_text: str  # description of the applied map in a few words
    fit_rows: int  # rows to which the applied map was fitted
    confirm_rows: int  # rows on which the candidates were compared and the gain was tested, by fits without the row
    min_prob: float | None  # smallest probability of the fits that take logarithms
    notes: tuple[Note, ...] = ()
    predicted_classes: PredictedClasses | None = None
    # Of the original probabilities after mixing, if they have exact zeros and no recalibration was confirmed.
    log_loss_unconfirmed: float | None = None
    held_out: HeldOutProbabilities | None = field(default=None, repr=False, compare=False)

    @property
    def chosen(self) -> str:
        """Name of the calibrator that cross-fitting chose."""
        return self.choice.spec.name if self.choice else "identity"

    @property
    def confirmed(self) -> bool:
        return self.applied != "identity"

    @property
    def outcome_text(self) -> str:
        """What the held-out rows have shown, in a few words, for the line that describes the calibrator."""
        if not self.choice:
            return "no recalibration attempted"
        if self.confirmed:
            return f"{self.outcome} on held-out rows"
        if self.outcome == TRAINING_ROWS:
            return "no recalibration judged: the model may have been fitted to these rows"
        return "no recalibration confirmed: too few rows" if self.outcome == NOT_ENOUGH_ROWS else "no gain found"

    @property
    def outcome(self) -> str | None:
        """What the held-out rows show; None if no recalibration was attempted.

        It is `confirmed`, `gain not established` (only the miscalibration is confirmed), `too few rows`, `no gain` or
        `not judged`.
        """
        if self.confirmation is None:
            return None
        is_on_new_rows = self.confirmation.outcome != TRAINING_ROWS
        return NO_GAIN if is_on_new_rows and self.chosen == "identity" else self.confirmation.outcome

    def without_required_rows(self) -> Recalibration:
        """This report with the outcome `no gain` instead of `too few rows`.

        It is for data in which no test rejects calibration. A small estimated gain may then well be noise, and a number
        of rows that would confirm it should not be extrapolated.
        """
        if self.confirmation is None or self.outcome != NOT_ENOUGH_ROWS:
            return self
        confirmation = replace(self.confirmation, outcome=NO_GAIN)
        notes = (_no_gain_note(confirmation) if note.code == _NOT_CONFIRMED_CODE else note for note in self.notes)
        return replace(self, confirmation=confirmation, notes=tuple(notes))

    def without_held_out(self) -> Recalibration:
        """This report without the probabilities of single rows, as a fitted calibrator keeps it."""
        return replace(self, held_out=None)

    @property
    def _log_loss_after(self) -> float | None:
        """Log loss of the returned probabilities, cross-fitted if a recalibration was confirmed."""
        if self.log_loss_unconfirmed is not None:
            return self.log_loss_unconfirmed
        if self.confirmation is None:
            return None
        return self.confirmation.log_loss_after if self.confirmed else self.confirmation.log_loss_before

    @property
    def candidates(self) -> list[dict[str, Any]]:
        return [candidate.to_dict() for candidate in self.choice.candidates] if self.choice else []

    def summary(self) -> str:
        """What was chosen and what the held-out rows show, in one line, as `print` shows it."""
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values; the gain is null if no recalibration was chosen."""
        confirmation, predicted_classes = self.confirmation, self.predicted_classes
        chosen_confirmation = confirmation if self.chosen != "identity" else None
        loss_before = confirmation.log_loss_before if confirmation else None
        percent_factor = 100 / loss_before if loss_before is not None and 0 < loss_before < math.inf else None
        gain_percent = gain_low_percent = required_rows = None
        if chosen_confirmation and percent_factor:
            gain_percent = percent_factor * (chosen_confirmation.log_loss_before - chosen_confirmation.log_loss_after)
            gain_low_percent = percent_factor * chosen_confirmation.low
        if confirmation and self.outcome == NOT_ENOUGH_ROWS:
            required_rows = round_to_two_digits(confirmation.required_rows)
        report = {
            "candidates": self.candidates,
            "chosen": self.chosen,
            "confirmed": self.confirmed,
            "outcome": self.outcome,
            "applied": self.applied,
            "alpha": confirmation.alpha if confirmation else None,
            "gain": chosen_confirmation.gain if chosen_confirmation else None,
            "gain_of": chosen_confirmation.gain_of if chosen_confirmation else None,
            "gain_percent": gain_percent,
            "gain_low_percent": gain_low_percent,
            "gain_se": chosen_confirmation.se if chosen_confirmation else None,
            "gain_low": chosen_confirmation.low if chosen_confirmation else None,
            "gain_high": chosen_confirmation.high if chosen_confirmation else None,
            "pvalue": chosen_confirmation.pvalue if chosen_confirmation else None,
            "required_rows": required_rows,
            "detectable_gain": confirmation.detectable if confirmation else None,
            "log_loss_before": loss_before,
            "log_loss_after": self._log_loss_after,
            "accuracy_before": predicted_classes.accuracy_before if predicted_classes else None,
            "accuracy_after": predicted_classes.accuracy_after if predicted_classes else None,
            "label_flips": predicted_classes.label_flips if predicted_classes else 0,
            "rows": {"fit": self.fit_rows, "confirm": self.confirm_rows},
            "mixing": confirmation.mixing if confirmation else None,
            "min_prob": self.min_prob,
            "map_text": self.map_text,
            "notes": [note.to_dict() for note in self.notes],
        }
        return {name: strict_json(value) for name, value in report.items()}

    def __str__(self) -> str:
        confirmation = self.confirmation
        if confirmation is None:
            return to_printable(f"no recalibration: {' '.join(note.text for note in self.notes)}")
        if self.confirmed:
            return (
                f"{self.applied} ({self.map_text}) {self.outcome}: log loss"
                f" {_format_loss(confirmation.log_loss_before)} → {format_number(confirmation.log_loss_after)},"
                f" p={format_number(confirmation.pvalue)}, cross-fitted"
                f" on {self.confirm_rows:,} rows"
            )
        mixed = ""
        if self.log_loss_unconfirmed is not None:
            losses = (confirmation.log_loss_before, self.log_loss_unconfirmed)
            mixed = f"; {self.map_text}: log loss {' → '.join(map(_format_loss, losses))}"
        if self.outcome == TRAINING_ROWS:
            return f"{self.outcome_text}{mixed}"
        if self.outcome == NOT_ENOUGH_ROWS:
            return f"{self.chosen} not confirmed: too few rows ({self.confirm_rows:,}){mixed}"
        rows = f"on {self.confirm_rows:,} rows"
        if not math.isfinite(confirmation.detectable):
            return f"no gain found {rows}{mixed}"
        detectable = f"{format_number(confirmation.detectable)} nats were detectable with 80% power"
        return f"no gain found: {detectable} {rows}{mixed}"


def _format_loss(loss: float) -> str:
    return format_number(loss) if math.isfinite(loss) else "infinite"


def round_to_two_digits(rows: float) -> int:
    """Round a number of rows to two digits, the precision of its estimate.

    >>> round_to_two_digits(1234.5), round_to_two_digits(96.1)
    (1200, 96)
    """
    return int(float(f"{rows:.2g}"))


def mixed_original_note(*, n: int, n_zero_rows: int, n_impossible: int, share: float, loss: float) -> Note:
    """Note TN544 that the original probabilities are returned after mixing, because some of them are exactly 0.

    `n_zero_rows` of `n` rows have such a probability, `n_impossible` of them an observed outcome of probability 0.
    `loss` is the log loss after mixing in the `share` of the uniform distribution.
    """
    if n_impossible:
        rows = "1 row" if n_impossible == 1 else f"{n_impossible:,} of {n:,} rows"
        reason = f"The observed class of {rows} has a predicted probability of exactly 0, whose log loss is infinite."
        effect = f"makes the log loss finite: {format_number(loss)}"
    else:
        rows = "1 row has" if n_zero_rows == 1 else f"{n_zero_rows:,} of {n:,} rows have"
        reason = f"{rows} a predicted probability of exactly 0, whose log loss is infinite if that class is observed."
        effect = "keeps the log loss of new rows finite"
    text = f"{reason} The returned probabilities are the original ones mixed with {share:.2g} of the uniform"
    return Note("TN544", f"{text} distribution, which {effect}.")


def outcome_notes(
    choice: CandidateChoice, confirmation: Confirmation, n_fit: int, share: float | None = None
) -> list[Note]:
    """The notes on how the gain was evaluated (TN508), and on its outcome (TN509, TN510 or TN543).

    The applied map was fitted to `n_fit` rows. `share` is that of the uniform distribution in this map, None if it is
    not mixed.
    """
    name = choice.spec.name
    if confirmation.outcome == TRAINING_ROWS:
        return [_training_rows_note()]
    if share is None:
        mixture = f"Each map is mixed with up to {format_share(choice.max_uniform_share)}"
        unchanged = " The returned probabilities are unchanged."
    else:
        mixture, unchanged = f"The map is mixed with {format_share(share)}", ""
    infinite = ""
    if math.isinf(confirmation.log_loss_before):
        infinite = " The original log loss is infinite; the gain is over original probabilities with the same mixture."
    evaluation_note = Note(
        "TN508",
        f"{mixture} of the uniform distribution to keep the log loss finite.{infinite}{unchanged}"
        f"{_assignments_text(choice.assignments)}",
    )
    gain = (
        f"{format_number(confirmation.gain)} nats per row"
        f" ({format_percent_in_text(1 - 2 * confirmation.alpha)} interval"
        f" {format_range(confirmation.low, confirmation.high)}; {format_pvalue_clause(confirmation.pvalue)})"
    )
    if name != "identity" and confirmation.confirmed:
        established = (
            "Confirmed"
            if confirmation.outcome == CONFIRMED
            else "Gain not established, although the miscalibration in this direction is confirmed"
        )
        scope = ""
        if confirmation.gain_of == PROCEDURE:
            scope = " The gain is that of the whole selection procedure, because the folds chose different methods."
        text = (
            f"{established}: on rows used neither to fit nor to choose the map, the gain is {gain}. The null hypothesis"
            f" of this p-value is that the original probabilities are calibrated.{scope} The returned map, {name}, was"
            f" fitted to {n_fit:,} rows and mixed with a small share of the uniform distribution."
        )
        return [evaluation_note, Note("TN509", text)]
    if name != "identity" and confirmation.outcome == NOT_ENOUGH_ROWS:
        text = (
            f"Not confirmed: the estimated gain by {name}, {gain}, is not significant. If it is the true gain, about"
            f" {round_to_two_digits(confirmation.required_rows):,} rows would confirm it with 80 % power; gains that"
            " are not significant are underestimated on average, so fewer rows may do."
            f"{_power_text(confirmation)}"
        )
        if confirmation.variance_factor > 1 and math.isfinite(confirmation.detectable):
            text += f" A map that is chosen among candidates needs {confirmation.variance_factor:g} times this gain."
        return [evaluation_note, Note(_NOT_CONFIRMED_CODE, text)]
    return [evaluation_note, _no_gain_note(confirmation)]


def _assignments_text(assignments: int) -> str:
    """A sentence on the assignments of clusters to folds over which results are averaged; empty for a single one."""
    if assignments == 1:
        return ""
    return (
        " Because there are few clusters, log losses and gains are means over"
        f" {assignments} assignments of the clusters to folds; other assignments (⟨rng=⟩) can still change the result."
    )


def _training_rows_note() -> Note:
    """Note TN545 that no recalibration can be judged on rows that the model was probably trained on."""
    text = (
        "No recalibration was attempted: the model may have been trained on these rows (TN163), and its errors on"
        " new rows differ. Pass rows that it has not seen, such as the predictions of cross_val_predict."
    )
    return Note("TN545", text)


def _no_gain_note(confirmation: Confirmation) -> Note:
    """Note TN510 that no gain is significant, with the gain that was detectable."""
    text = (
        "No significant gain: on held-out rows, the fitted calibrators are not significantly better than the original"
        f" probabilities.{_power_text(confirmation)}"
    )
    return Note("TN510", text)


def _power_text(confirmation: Confirmation) -> str:
    """A sentence on the gain that these rows would have confirmed with 80 % power; empty if no gain is that large."""
    if not math.isfinite(confirmation.detectable):
        return ""
    level = format_percent_in_text(confirmation.alpha)
    return (
        " The smallest gain of a one-parameter map that is detectable with 80 % power on these rows is"
        f" {format_number(confirmation.detectable)} nats per row (at the {level} level)."
    )
