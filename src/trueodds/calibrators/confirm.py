"""Test whether a chosen recalibration improves the log loss on held-out rows, and report the outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.calibrators.choose import CandidateChoice
from trueodds.calibrators.cross_validation import count_units
from trueodds.calibrators.gain_estimate import estimate_gain
from trueodds.calibrators.recalibrated_rows import HeldOutProbabilities, PredictedClasses
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number, format_percent
from trueodds.core.json_files import strict_json
from trueodds.core.printable import to_printable
from trueodds.core.typing import Array

_POWER = 0.8  # of the test, for required rows and detectable gains
_MAX_ROWS_FACTOR = 100  # times the available rows: a gain that needs more counts as none
# Factor of the variance: two folds test each other's fits, so each product of their scores enters the sum twice.
# With one direction t is skewed; without the doubling, the test rejects in 3.9 % of cases at level 5 % and in 0.8 % at
# level 1 %. With two directions it rejects in 5.7 % and 1.3 %.
_MIN_CLUSTERS = 40  # below which the p-value is doubled
_CROSS_FIT_VARIANCE_FACTOR = 2.0

CONFIRMED, NOT_ENOUGH_ROWS, NO_GAIN = "confirmed", "too few rows", "no gain"
METHOD, PROCEDURE = "method", "procedure"  # whose gain is estimated: one calibrator's, or that of choice and fit


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The cross-fitted gain in mean log loss, and its test."""

    outcome: str  # CONFIRMED, NOT_ENOUGH_ROWS or NO_GAIN
    gain: float  # nats per row; positive is better
    se: float  # standard error of the gain
    low: float  # lower confidence limit of the gain, at one-sided level 1 − alpha
    high: float  # upper confidence limit, at the same one-sided level
    pvalue: float  # one-sided
    required_rows: float  # rows that would confirm such a gain with 80 % power; infinite without a gain
    # Gain of one parameter that is detectable with 80 % power on these rows; infinite if no gain can be that large.
    detectable: float
    variance_factor: float  # gain that is detectable by this test, in multiples of `detectable`
    log_loss_before: float  # of the original probabilities; infinite if an observed outcome had probability 0
    log_loss_after: float  # cross-fitted
    mixing: float  # largest share of the uniform distribution in the maps
    alpha: float  # level of the test
    gain_of: str  # METHOD or PROCEDURE; the folds of a procedure may have chosen other calibrators than the applied one

    @property
    def confirmed(self) -> bool:
        """Whether the test is significant, which confirms that P is miscalibrated in the direction of the maps."""
        return self.outcome == CONFIRMED

    @property
    def gain_confirmed(self) -> bool:
        """Whether the confidence interval of the gain is above 0 too."""
        return self.confirmed and self.low > 0

    def with_loss_of_all_rows(self, before: float) -> Confirmation:
        """The result relative to the log loss of all rows, where the gain was estimated on some of them."""
        after = (
            before - self.gain if math.isfinite(before) and math.isfinite(self.log_loss_before) else self.log_loss_after
        )
        # No more rows than these are compared, so that a gain which needs more cannot be confirmed.
        outcome = NO_GAIN if self.outcome == NOT_ENOUGH_ROWS else self.outcome
        return replace(self, outcome=outcome, log_loss_before=before, log_loss_after=after)


def confirm_gain(
    P: Probabilities,
    logs: Array,
    Y: Array,
    w: Array,
    uniform_share: Array,
    *,
    alpha: float = 0.05,
    cluster: Array | None = None,
    one_parameter: bool = False,
) -> Confirmation:
    r"""Test whether maps that were fitted and chosen on other rows have a smaller log loss than P.

    .. math:: g_{ik} = \log q_{ik} - \log p_{ik}, \quad
        t = \frac{\sum_i w_i\,(y_i - p_i) \cdot g_i}{\sqrt{2 \sum_i w_i^2 \operatorname{Var}_{p_i} g_i}}

    The gain Σ w y·g is compared with its null distribution under redrawn labels. If P is calibrated, its mean is Σ w
    p·g ≤ 0, and its variance in a fold, whose map the other folds made, is the sum in the root. The sum is doubled
    because any two folds test each other's maps, but not for a map of `one_parameter` that was named in advance. The
    test is a one-sided Student t test with as many degrees of freedom as rows (clusters) minus one; a gain is confirmed
    only if it is positive too. With fewer than 40 clusters the p-value is doubled, because the test of calibrated
    predictions in 20 clusters would confirm 9 % at the 5 % level. By concavity, the mean of t is positive exactly if
    some step from P towards q reduces the log loss. Where outcomes vary more than P implies, in clusters or votes,
    their own variance is used. The interval is that of the mean paired gain, whose variance is at least the one that P
    implies unless P is rejected.

    The required number of rows is the smallest one with which the test rejects and the estimated gain is positive, each
    with 80 % power, if the estimated gain is the true one. A map that is fitted to more rows tends to the best one,
    whose gain is half of the excess Σ w (y − p)·g, so the excess counts as at most twice the gain.

    `logs` (n, K) are the logarithms of q after mixing in the `uniform_share` (n, 1) of the uniform. The test limits
    the logarithms of p in the same way, so that no single row decides; the reported gain does so only if a loss
    is infinite. Y is (n, K), w (n,) > 0. Cost: O(nK).

    >>> P, Y, share = np.array([[0.1, 0.9]] * 200), np.eye(2)[[1, 1, 1, 0] * 50], np.full((200, 1), 1e-3)
    >>> confirmation = confirm_gain(P, np.log(np.array([[0.25, 0.75]] * 200)), Y, np.ones(200), share)
    >>> confirmation.outcome, round(confirmation.gain, 2)
    ('confirmed', 0.09)
    """
    estimate = estimate_gain(P, logs, Y, w, uniform_share, cluster)
    variance_factor = 1.0 if one_parameter else _CROSS_FIT_VARIANCE_FACTOR
    null_std_error = estimate.null_std_error * math.sqrt(variance_factor)
    df = count_units(len(w), cluster) - 1
    detectable = detectable_gain(len(w) / estimate.design_effect, df, alpha)
    gain, excess_gain = estimate.gain, estimate.excess_gain
    pvalue, low, high, required_rows = 1.0, -np.inf, np.inf, np.inf
    if df >= 1 and null_std_error > 0:  # else the map changes nothing
        pvalue = float(stdtr(df, -excess_gain / null_std_error))
        if cluster is not None and df + 1 < _MIN_CLUSTERS:
            pvalue = min(1.0, 2 * pvalue)
    confirmed = pvalue <= alpha and estimate.is_positive
    se = estimate.se if confirmed else estimate.se_if_calibrated
    if df >= 1 and np.isfinite(se):
        quantile = float(stdtrit(df, 1 - alpha))
        low, high = gain - quantile * se, gain + quantile * se
        if estimate.is_positive and excess_gain > 0 and gain > 0:
            power_quantile = float(stdtrit(df, _POWER))
            required_rows = len(w) * max(
                ((quantile + power_quantile) * null_std_error / excess_gain) ** 2,
                variance_factor * detectable / gain,
                (power_quantile * se / gain) ** 2,
            )
    is_attainable = required_rows <= _MAX_ROWS_FACTOR * len(w)
    return Confirmation(
        outcome=CONFIRMED if confirmed else NOT_ENOUGH_ROWS if is_attainable else NO_GAIN,
        gain=gain,
        se=se,
        low=low,
        high=high,
        pvalue=pvalue,
        required_rows=required_rows,
        detectable=detectable if detectable < estimate.log_loss_before else math.inf,
        variance_factor=variance_factor,
        log_loss_before=estimate.log_loss_before,
        log_loss_after=estimate.log_loss_after,
        mixing=float(uniform_share.max()),
        alpha=alpha,
        gain_of=METHOD if one_parameter else PROCEDURE,
    )


def detectable_gain(n: float, df: int, alpha: float) -> float:
    """Gain in nats of a one-parameter map that n independent rows detect with 80 % power: about 3/n at the 5 % level.

    With noncentrality λ the gain is λ/2n and the mean of t is √λ. For clustered rows n is the number of rows divided by
    their design effect, and `df` is the number of clusters minus one.
    """
    if df < 1:
        return math.inf
    return float((stdtrit(df, 1 - alpha) + stdtrit(df, _POWER)) ** 2 / (2 * n))


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Report of `auto`: candidates, choice, confirmation on held-out rows, and the map that was applied."""

    choice: CandidateChoice | None  # None where the rows were too few to choose
    confirmation: Confirmation | None  # of the whole procedure
    applied: str  # the calibrator whose map is applied
    summary: str  # that map in a few words
    fit_rows: int
    confirm_rows: int  # on which the candidates were compared and the gain was tested, by fits without the row
    min_prob: float | None  # of the fits that take logarithms
    notes: tuple[Note, ...] = ()
    predicted_classes: PredictedClasses | None = None
    held_out: HeldOutProbabilities | None = field(default=None, repr=False, compare=False)

    @property
    def chosen(self) -> str:
        """Name of the calibrator that cross-fitting chose."""
        return self.choice.spec.name if self.choice else "identity"

    @property
    def confirmed(self) -> bool:
        """Whether a recalibration was chosen and confirmed."""
        return self.applied != "identity"

    @property
    def confirmed_text(self) -> str:
        """What a confirmed recalibration has established: its gain, or the miscalibration only."""
        has_gain = self.confirmation is not None and self.confirmation.gain_confirmed
        return "confirmed" if has_gain else "miscalibration confirmed but not the gain"

    @property
    def outcome(self) -> str | None:
        """`confirmed`, `too few rows` or `no gain`; None if no recalibration was attempted."""
        if self.confirmation is None:
            return None
        return NO_GAIN if self.chosen == "identity" else self.confirmation.outcome

    def without_required_rows(self) -> Recalibration:
        """This report for data in which nothing else rejects calibration, so that a small gain may well be noise.

        A number of rows that would confirm it would be extrapolated from that noise, so there is `no gain`.
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
    def candidates(self) -> list[dict[str, Any]]:
        """The table of candidates, one dictionary each."""
        return [candidate.to_dict() for candidate in self.choice.candidates] if self.choice else []

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
            "log_loss_after": confirmation.log_loss_after if confirmation and self.confirmed else loss_before,
            "accuracy_before": predicted_classes.accuracy_before if predicted_classes else None,
            "accuracy_after": predicted_classes.accuracy_after if predicted_classes else None,
            "label_flips": predicted_classes.label_flips if predicted_classes else 0,
            "rows": {"fit": self.fit_rows, "confirm": self.confirm_rows},
            "mixing": confirmation.mixing if confirmation else None,
            "min_prob": self.min_prob,
            "summary": self.summary,
            "notes": [note.to_dict() for note in self.notes],
        }
        return {name: strict_json(value) for name, value in report.items()}

    def __str__(self) -> str:
        confirmation = self.confirmation
        if confirmation is None:
            return to_printable(f"no recalibration: {' '.join(note.text for note in self.notes)}")
        if self.confirmed:
            return (
                f"{self.applied} ({self.summary}) {self.confirmed_text}: log loss"
                f" {format_number(confirmation.log_loss_before)} → {format_number(confirmation.log_loss_after)},"
                f" p={format_number(confirmation.pvalue)}, cross-fitted"
                f" on {self.confirm_rows:,} rows"
            )
        if self.outcome == NOT_ENOUGH_ROWS:
            return f"{self.chosen} not confirmed: too few rows ({self.confirm_rows:,})"
        rows = f"on {self.confirm_rows:,} rows"
        if not math.isfinite(confirmation.detectable):
            return f"no gain found {rows}"
        return f"no gain found: {format_number(confirmation.detectable)} nats were detectable with 80% power {rows}"


def round_to_two_digits(rows: float) -> int:
    """Round a number of rows to two digits, the precision of its estimate.

    >>> round_to_two_digits(1234.5), round_to_two_digits(96.1)
    (1200, 96)
    """
    return int(float(f"{rows:.2g}"))


_NOT_CONFIRMED_CODE = "TN543"


def outcome_notes(
    choice: CandidateChoice, confirmation: Confirmation, n_fit: int, share: float | None = None, zero_rows: str = ""
) -> list[Note]:
    """The notes on evaluation and gain; the map is fitted to `n_fit` rows.

    `share` is that of the uniform distribution in the map, None for the identity. `zero_rows` states how many rows have
    a predicted probability of exactly 0, which the identity keeps.
    """
    name = choice.spec.name
    shares = f"up to {choice.max_uniform_share:.2g}" + ("" if share is None else f"; {share:.2g} in the returned map")
    unchanged = ""
    if share is None:
        unchanged = " The returned probabilities are unchanged and not mixed"
        unchanged += f": {zero_rows}, whose log loss is infinite if that class is observed." if zero_rows else "."
    evaluation_note = Note(
        "TN508",
        f"Each fitted map is mixed with a small share of the uniform distribution ({shares}), so that its log loss is"
        " finite. For the candidate table and the test, the original probabilities are raised to at least"
        " the smallest probability that this mixture can have. The reported gain uses the unmodified probabilities,"
        f" unless their log loss is infinite.{unchanged}",
    )
    pvalue = f"p = {format_number(confirmation.pvalue)}" if confirmation.pvalue >= 0.0001 else "p < 0.0001"
    gain = (
        f"{format_number(confirmation.gain)} nats per row ({_percent(1 - 2 * confirmation.alpha)} interval"
        f" {format_number(confirmation.low)} to {format_number(confirmation.high)}; {pvalue})"
    )
    if name != "identity" and confirmation.confirmed:
        established = (
            "Confirmed"
            if confirmation.gain_confirmed
            else "Miscalibration in this direction is confirmed, but the gain in log loss is not"
        )
        scope = ""
        if confirmation.gain_of == PROCEDURE:
            scope = " (estimated for the whole procedure, because the folds chose different methods)"
        text = (
            f"{established}: on rows used neither to fit nor to choose the map, the gain{scope} is {gain}. The null"
            " hypothesis of this p-value is that the original probabilities are calibrated. The map applied is"
            f" {name}, fitted on {n_fit:,} rows and mixed with a little of the uniform distribution."
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


def _no_gain_note(confirmation: Confirmation) -> Note:
    """Note TN510 that no gain is significant, with the gain that was detectable."""
    text = (
        "No significant gain: calibrators chosen and fitted on some of the rows are not significantly better than the"
        f" original probabilities on the others.{_power_text(confirmation)}"
    )
    return Note("TN510", text)


def _power_text(confirmation: Confirmation) -> str:
    """A sentence on the gain that these rows would have confirmed with 80 % power; empty if no gain is that large."""
    if not math.isfinite(confirmation.detectable):
        return ""
    return (
        f" With these rows, a one-parameter map that gains {format_number(confirmation.detectable)} nats per row would"
        f" have been confirmed in 80 % of cases (level {_percent(confirmation.alpha)})."
    )


def _percent(level: float) -> str:
    """`95 %`, with the space that prose has before the sign."""
    return f"{format_percent(level)[:-1]} %"
