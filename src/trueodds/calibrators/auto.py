"""Choose a calibrator by nested cross-validation and apply it only if a test confirms the gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._curves.one_vs_rest import MAX_DECREASE, decrease_note, total_decrease
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities, exact_zeros, to_probabilities
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, lower_min_prob_for_logs, to_accepted_input
from trueodds.calibrators.choose import (
    CandidateChoice,
    CrossFittingRows,
    NestedChoice,
    assign_folds,
    choose_by_log_loss,
    choose_leaving_one_fold_out,
    cross_fit,
    sort_by_complexity,
)
from trueodds.calibrators.cross_validation import (
    METHOD,
    MIN_ROWS,
    NO_GAIN,
    NOT_ENOUGH_ROWS,
    TRAINING_ROWS,
    Confirmation,
    confirm_gain,
    count_units,
    stratified_holdout,
)
from trueodds.calibrators.recalibration_report import (
    HeldOutProbabilities,
    PredictedClasses,
    Recalibration,
    mixed_original_note,
    outcome_notes,
)
from trueodds.calibrators.uniform_mixture import IdentityMap, IdentitySpec, MixedMap, uniform_share
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.rng import as_generator
from trueodds.core.settings import CHECKED_BY_CLASS, Folds, Level, Seed
from trueodds.core.typing import Array
from trueodds.data.plausibility import IMPLAUSIBLE_DATA_CODES
from trueodds.tallies.proper_score_sums import log_loss, log_loss_from_logs

# Probabilities (rows times classes) on which candidates are compared: more would hardly reduce the standard errors.
MAX_PROBABILITIES = 200_000
# With many classes these are so few rows that a map with a curve per class, which is the best one when fitted to all
# rows, would seem worse than a temperature. Up to this number of rows, more probabilities are compared.
_ROWS_FOR_MANY_CLASSES = 5_000
_MAX_PROBABILITIES_OF_MANY_CLASSES = 500_000
# With few clusters, results depend on which of them share a fold, so they are averaged over several assignments.
_MIN_CLUSTERS_FOR_ONE_ASSIGNMENT = 200
_MAX_ASSIGNMENTS, _MAX_PROBABILITIES_OF_ASSIGNMENTS = 5, 250_000  # with more probabilities in all, fewer, but two
_ONE_PARAMETER_METHOD = "temperature"  # the candidate with one parameter, which is also tested by itself
_MIN_FOLDS = 3  # one to test, one to choose, one to fit
_NOTES_RULED_OUT_BY_MIXING = ("TN505", "TN513")  # notes on zero and tiny probabilities, which mixing removes


class EvaluatedChoice(NamedTuple):
    """A choice among the candidates, and the test of its gain on held-out rows."""

    choice: CandidateChoice
    confirmation: Confirmation
    held_out_logs: Array  # (assignments, n, K) held-out log-probabilities whose gain was tested


class AutoSpec(CalibratorSpec):
    """The simplest adequate calibrator, applied only if held-out rows confirm a gain; otherwise the identity.

    Candidates are compared by cross-validated log loss and the one-standard-error rule, and the gain of the whole
    procedure is tested on rows that neither fit nor choice used. Predicted classes may change, and for two
    classes the order of the scores; the report says so.

    Parameters
    ----------
    candidates : sequence of str or CalibratorSpec, optional
        Names or instances of the candidates. By default every calibrator marked as a `candidate` that suits the number
        of classes, with its default settings; of those that are alike, one.
    folds : int, default=5
        Number of folds. Clusters are never split.
    alpha : float, default=0.05
        Significance level of the one-sided test of the gain.
    rng : int or numpy.random.Generator, default=0
        Seed of the folds, which also depend on the order of the rows.

    Notes
    -----
    Folds are stratified by the most probable class. Without each fold, the candidates are fitted and one is chosen by
    log loss on further folds; the fold then estimates the gain of that choice. A one-sided test of these gains on all
    rows compares them with their distribution under redrawn labels. If it confirms a gain, choice and fit are repeated
    on all rows ("procedure confirmed"). If not, temperature scaling is fitted if it is confirmed by itself, since one
    parameter that was named in advance needs fewer rows. The map is mixed with 1/(n + 1) of the uniform distribution,
    so that its log loss is always finite. If nothing is confirmed, the original probabilities are mixed as well if any
    is exactly 0, and else stay unchanged; with too few rows to choose, only if such an outcome was observed.

    With fewer than 200 clusters, losses and gains are averaged over up to 5 random assignments of the clusters to
    folds, because they depend on which clusters share a fold.

    Cost: 10 fits of each candidate to three fifths of the rows and 6 to more of them; candidates that are far behind
    after the first 5 are dropped. This is for one assignment of the rows to folds.

    References
    ----------
    .. [1] Stone (1974). Nested cross-validation.
    .. [2] Bayle et al. (2020). Nested cross-validation.
    .. [3] Breiman et al. (1984). The one-standard-error rule.

    Examples
    --------
    >>> P, Y = np.array([[0.1, 0.9]] * 400), np.eye(2)[[1, 1, 1, 0] * 100]
    >>> AutoSpec().fit(P, Y, np.ones(400)).describe()
    'T = 2.00'
    """

    name = "auto"
    candidate = False
    takes_logs = True
    exemptions = dict.fromkeys(
        ("row order", "weights", "class order"),
        "folds are drawn in the order of the rows",
    )
    candidates: Annotated[tuple[str | CalibratorSpec, ...] | None, CHECKED_BY_CLASS] = None
    folds: Folds = 5
    alpha: Level = 0.05
    rng: Seed | np.random.Generator = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._make_candidate_specs()

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "candidates": tuple(spec.name for spec in self._make_candidate_specs())}

    def refuse_implausible_predictions(
        self, n: int, doubts: Sequence[Note]
    ) -> tuple[CalibrationMap, Recalibration] | None:
        """The identity if the data were probably misread, for instance because the predictions look like labels."""
        reasons = [note for note in doubts if note.code in IMPLAUSIBLE_DATA_CODES]
        return _refuse_recalibration(n, None, reasons, _Original(IdentityMap())) if reasons else None

    def _make_candidate_specs(self) -> list[CalibratorSpec]:
        """The candidates as instances; raises TO203 for invalid ones."""
        candidates = self.candidates
        if candidates is None:
            candidates = tuple(name for name in CALIBRATORS.names() if CALIBRATORS.load(name).candidate)
        if isinstance(candidates, (list, tuple)):  # a scikit-learn estimator stands for its calibrator
            candidates = tuple(
                candidate.make_spec() if hasattr(candidate, "make_spec") else candidate for candidate in candidates
            )
        if not isinstance(candidates, tuple) or not all(
            isinstance(candidate, (str, CalibratorSpec)) for candidate in candidates
        ):
            raise InputError(
                "TO203",
                "candidates must be a list of names or CalibratorSpec instances.",
                describe(candidates),
                "For instance ['temperature'].",
            )
        specs = [CALIBRATORS.load(candidate)() if isinstance(candidate, str) else candidate for candidate in candidates]
        if any(isinstance(spec, AutoSpec) for spec in specs):
            raise InputError("TO203", "auto cannot be its own candidate.", describe(candidates), "Leave it out.")
        if len({(spec.name, repr(spec)) for spec in specs}) < len(specs):
            raise InputError("TO203", "A candidate is given twice.", describe(candidates), "Name each once.")
        if on_logits := [spec.name for spec in specs if spec.logits]:
            raise InputError(
                "TO203",
                "Candidates are compared on probabilities, so they cannot take logits.",
                f"{on_logits[0]} with ⟨logits=True⟩",
                "Leave logits out, or fit it by name and compare log losses on held-out rows.",
            )
        return specs

    def _suitable_specs(self, n: int, k: int) -> list[CalibratorSpec]:
        """The candidates for n compared rows of K classes; raises TO511 if a requested one does not suit K classes."""
        specs = self._make_candidate_specs()
        if self.candidates is None:
            return [spec for spec in specs if spec.is_suitable(n, k)]
        for spec in specs:
            spec.check_classes(k)
        return specs

    def _draw_comparison_rows(self, P: Probabilities, cluster: Array | None, rng: np.random.Generator) -> Array:
        """Indices of the rows on which candidates are compared and confirmed: all, or a stratified sample."""
        n_compared = _count_compared_rows(*P.shape)
        if n_compared == len(P):
            return np.arange(len(P))
        return np.flatnonzero(stratified_holdout(to_probabilities(P), n_compared / len(P), cluster, rng))

    def _prefer_one_parameter_unless_confirmed(
        self,
        assignments: Sequence[CrossFittingRows],
        specs: Sequence[CalibratorSpec],
        cross_fitted_logs: Sequence[Array | None],
        procedure: EvaluatedChoice,
    ) -> EvaluatedChoice:
        """The choice of the procedure if confirmed; else temperature scaling if it is confirmed or needs fewer rows.

        One parameter that was named in advance can be confirmed with fewer rows than a choice among candidates.
        """
        choice, confirmation, _ = procedure
        index = next((i for i, spec in enumerate(specs) if spec.name == _ONE_PARAMETER_METHOD), None)
        if index is None or (confirmation.confirmed and choice.spec.name != "identity"):
            return procedure
        cross_fitted = cross_fitted_logs[index]
        logs = cross_fit(assignments, specs[index]) if cross_fitted is None else cross_fitted
        one_parameter = self._confirm_gain(assignments, logs, one_parameter=True)
        required_rows = np.inf if choice.spec.name == "identity" else confirmation.required_rows
        is_better = one_parameter.confirmed or (
            one_parameter.outcome == NOT_ENOUGH_ROWS and one_parameter.required_rows < required_rows
        )
        if is_better:
            return EvaluatedChoice(choice.with_chosen(specs[index]), one_parameter, logs)
        return procedure

    def _confirm_gain(
        self, assignments: Sequence[CrossFittingRows], logs: Array, *, one_parameter: bool = False
    ) -> Confirmation:
        """Test the gain of held-out log-probabilities (assignments, n, K)."""
        rows, shares = assignments[0], np.stack([rows.uniform_shares() for rows in assignments])
        return confirm_gain(
            rows.P, logs, rows.Y, rows.w, shares, alpha=self.alpha, cluster=rows.cluster, one_parameter=one_parameter
        )

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CalibrationMap:
        return self.fit_with_report(P, Y, w)[0]

    def fit_with_report(
        self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[CalibrationMap, Recalibration]:
        """The map that is finally applied, and the complete report.

        Candidates are compared on a sample if there are many rows; the chosen one is fitted to all rows, unless the
        model was probably trained on these rows.
        """
        has_weight = w > 0
        if not has_weight.all():
            P, Y, w = P[has_weight], Y[has_weight], w[has_weight]
            cluster = None if cluster is None else cluster[has_weight]
        specs = self._suitable_specs(_count_compared_rows(*P.shape), P.shape[1])
        if isinstance(P, LogProbabilities):
            specs = [lower_min_prob_for_logs(spec) for spec in specs]
        min_prob = max((spec.min_prob for spec in specs if hasattr(spec, "min_prob")), default=None)
        if refusal := _insufficient_data_message(Y, cluster):
            has_impossible_outcomes = bool((exact_zeros(P) & (Y > 0)).any())
            original = _Original.of_rows(P, Y, w, mixed=has_impossible_outcomes)
            unchanged = "" if has_impossible_outcomes else " The probabilities stay unchanged."
            return _refuse_recalibration(len(P), min_prob, [Note("TN507", refusal + unchanged)], original)
        rng = as_generator(self.rng)
        specs = sort_by_complexity(specs)
        compared = self._draw_comparison_rows(P, cluster, rng)
        sample_cluster = None if cluster is None else cluster[compared]
        sample_P, sample_Y, sample_w, folds = P[compared], Y[compared], w[compared], max(self.folds, _MIN_FOLDS)
        assignments = [
            assign_folds(sample_P, sample_Y, sample_w, folds, sample_cluster, rng)
            for _ in range(_count_assignments(len(compared), P.shape[1], sample_cluster))
        ]
        choice, confirmation, held_out_logs = self._choose_and_confirm(assignments, specs)
        if len(compared) < len(P):
            confirmation = confirmation.with_loss_of_all_rows(float(weighted_sum(w, _log_losses(P, Y)) / w.sum()))
        if confirmation.outcome == NO_GAIN:  # the best candidate gains nothing
            choice = choice.with_chosen(IdentitySpec())
        if trained_on_rows:
            confirmation = replace(confirmation, outcome=TRAINING_ROWS)
        confirmed = confirmation.confirmed and choice.spec.name != "identity"
        inputs = to_accepted_input(choice.spec, P)
        notes: list[Note] = []
        original = _Original(IdentityMap())
        if confirmed:
            applied_map, notes = _fit_confirmed(choice.spec, inputs, Y, w, cluster)
            if P.shape[1] == 2:
                choice = choice.with_score_order(keeps_order=all(note.code != "TN529" for note in notes))
        else:
            original = _Original.of_rows(P, Y, w, mixed=bool(exact_zeros(P).any()))
            applied_map = original.calibration_map
        share = applied_map.share if isinstance(applied_map, MixedMap) else None
        notes += outcome_notes(choice, confirmation, len(P), share)
        notes += original.notes
        if len(compared) < len(P):
            text = f"The candidates were compared on {len(compared):,} of the {len(P):,} rows"
            notes.append(Note("TN539", text + (f"; the chosen one was fitted on {len(P):,}." if confirmed else ".")))
        return applied_map, Recalibration(
            choice=choice,
            confirmation=confirmation,
            applied=applied_map.name,
            map_text=applied_map.describe(),
            fit_rows=len(P),
            confirm_rows=len(compared),
            min_prob=min_prob,
            notes=tuple(notes),
            log_loss_unconfirmed=original.log_loss,
            predicted_classes=PredictedClasses.compare_predictions(P, applied_map, Y, w, choice),
            held_out=HeldOutProbabilities(np.flatnonzero(has_weight)[compared], np.exp(held_out_logs).mean(axis=0)),
        )

    def _choose_and_confirm(
        self, assignments: Sequence[CrossFittingRows], specs: Sequence[CalibratorSpec]
    ) -> EvaluatedChoice:
        """Choose a candidate by cross-fitting, and test the gain of the procedure by nested cross-fitting."""
        nested_choices = [choose_leaving_one_fold_out(rows, specs) for rows in assignments]
        dropped = frozenset.intersection(*(nested_choice.dropped for nested_choice in nested_choices))
        cross_fitted_logs = [None if i in dropped else cross_fit(assignments, spec) for i, spec in enumerate(specs)]
        choice = choose_by_log_loss(assignments, specs, cross_fitted_logs, nested_choices)
        nested_logs = _nested_log_probabilities(assignments, cross_fitted_logs, nested_choices)
        confirmation = self._confirm_gain(assignments, nested_logs)
        if all(specs[i] is choice.spec for nested_choice in nested_choices for i in nested_choice.chosen_by_fold):
            confirmation = replace(confirmation, gain_of=METHOD)
        procedure = EvaluatedChoice(choice, confirmation, nested_logs)
        return self._prefer_one_parameter_unless_confirmed(assignments, specs, cross_fitted_logs, procedure)


class _Original(NamedTuple):
    """The original probabilities as they are returned if no recalibration is confirmed."""

    calibration_map: CalibrationMap  # the identity, or its mixture with the uniform distribution
    log_loss: float | None = None  # of the mixture; None if it is not mixed
    notes: tuple[Note, ...] = ()

    @classmethod
    def of_rows(cls, P: Probabilities, Y: Array, w: Array, *, mixed: bool) -> _Original:
        """The map for rows P (n, K) with outcome shares Y (n, K) and weights w (n,), mixed on request."""
        if not mixed:
            return cls(IdentityMap())
        mixed_map = MixedMap(IdentityMap(), uniform_share(len(P)))
        is_zero = exact_zeros(P)
        loss = float(weighted_sum(w, log_loss(mixed_map.apply(to_probabilities(P)), Y)) / w.sum())
        note = mixed_original_note(
            n=len(P),
            n_zero_rows=int(is_zero.any(axis=1).sum()),
            n_impossible=int((is_zero & (Y > 0)).any(axis=1).sum()),
            share=mixed_map.share,
            loss=loss,
        )
        return cls(mixed_map, loss, (note,))


def _refuse_recalibration(
    n: int, min_prob: float | None, reasons: Sequence[Note], original: _Original
) -> tuple[CalibrationMap, Recalibration]:
    """The map for n rows on which no recalibration is attempted, and a report with the reasons."""
    return original.calibration_map, Recalibration(
        choice=None,
        confirmation=None,
        applied=original.calibration_map.name,
        map_text=original.calibration_map.describe(),
        fit_rows=n,
        confirm_rows=0,
        min_prob=min_prob,
        notes=(*reasons, *original.notes),
        log_loss_unconfirmed=original.log_loss,
    )


def _fit_confirmed(
    spec: CalibratorSpec, inputs: Probabilities, Y: Array, w: Array, cluster: Array | None
) -> tuple[CalibrationMap, list[Note]]:
    """Fit the confirmed candidate to all rows and mix it with the uniform distribution; returns map and notes."""
    calibration_map = spec.fit_with_report(inputs, Y, w, cluster)[0]
    notes = [n for n in spec.notes(calibration_map, inputs, Y, w) if n.code not in _NOTES_RULED_OUT_BY_MIXING]
    if Y.shape[1] == 2 and all(note.code != "TN529" for note in notes):  # which only splines have by themselves
        decrease = total_decrease(calibration_map, inputs)
        notes += [decrease_note(decrease)] if decrease > MAX_DECREASE else []
    return MixedMap(calibration_map, uniform_share(len(inputs))), notes


def _log_losses(P: Probabilities, Y: Array) -> Array:
    """Log loss of each row of P (n, K) for the outcomes Y (n, K), (n,)."""
    return log_loss_from_logs(P.values, Y) if isinstance(P, LogProbabilities) else log_loss(P, Y)


def _nested_log_probabilities(
    assignments: Sequence[CrossFittingRows],
    cross_fitted_logs: Sequence[Array | None],
    nested_choices: Sequence[NestedChoice],
) -> Array:
    """Held-out log-probabilities (assignments, n, K) of the whole procedure: each fold by the one chosen without it."""
    nested_logs = np.empty((len(assignments), *assignments[0].Y.shape))
    for a, (rows, nested_choice) in enumerate(zip(assignments, nested_choices, strict=True)):
        for f, i in enumerate(nested_choice.chosen_by_fold):
            logs, in_fold = cross_fitted_logs[i], rows.fold_of_row == f
            assert logs is not None
            nested_logs[a, in_fold] = logs[a, in_fold]
    return nested_logs


def _count_assignments(n: int, k: int, cluster: Array | None) -> int:
    """Number of assignments of n rows of K classes to folds over which results are averaged."""
    if cluster is None or count_units(n, cluster) >= _MIN_CLUSTERS_FOR_ONE_ASSIGNMENT:
        return 1
    return min(_MAX_ASSIGNMENTS, max(2, _MAX_PROBABILITIES_OF_ASSIGNMENTS // (n * k)))


def _count_compared_rows(n: int, k: int) -> int:
    """Number of the n rows of K classes on which candidates are compared.

    >>> [_count_compared_rows(20_000, k) for k in (2, 20, 100, 1000)]
    [20000, 10000, 5000, 500]
    """
    n_many_classes = min(_ROWS_FOR_MANY_CLASSES, _MAX_PROBABILITIES_OF_MANY_CLASSES // k)
    return min(n, max(MAX_PROBABILITIES // k, n_many_classes))


def _insufficient_data_message(Y: Array, cluster: Array | None) -> str:
    """The reason why no recalibration is attempted on outcomes Y (n, K); empty if there are enough rows and classes."""
    n = count_units(len(Y), cluster)
    unit = "row" if cluster is None else "cluster"
    if n < MIN_ROWS:
        count_text = f"{n} {unit} is" if n == 1 else f"{n} {unit}s are"
        return f"{count_text} too few (at least {MIN_ROWS} are required)."
    if (Y.sum(axis=0) >= 2).sum() < 2:
        return "Fewer than two classes were observed at least twice, so no recalibration can be confirmed."
    return ""
