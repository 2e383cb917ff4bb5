"""Choose a calibrator by nested cross-validation and apply it only if a test confirms the gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities, logs_of, probabilities
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, input_for, lower_min_prob_for_logs
from trueodds.calibrators.choose import (
    Choice,
    CrossFittingRows,
    NestedChoice,
    assign_folds,
    choose_by_log_loss,
    choose_without_each_fold,
    sort_by_complexity,
)
from trueodds.calibrators.confirm import (
    NO_GAIN,
    NOT_ENOUGH_ROWS,
    Confirmation,
    Recalibration,
    confirm,
    round_to_two_digits,
)
from trueodds.calibrators.cross_validation import count_units, stratified_holdout
from trueodds.calibrators.identity import IdentityMap, IdentitySpec
from trueodds.calibrators.uniform_mixture import MixedMap, uniform_share
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number, format_percent
from trueodds.core.rng import as_generator
from trueodds.core.settings import OWN, Folds, Level, Seed
from trueodds.core.typing import Array
from trueodds.tallies.score_sums import log_score

MAX_PROBABILITIES = (
    200_000  # probabilities on which candidates are compared; the standard errors of more are below any use
)
_MIN_ROWS = 20  # rows (clusters) below which nothing is looked for
_ONE_PARAMETER = 1  # the complexity of what is confirmed by itself, too: temperature
_MIN_FOLDS = 3  # one that judges, one that chooses, one that fits
_RULED_OUT = ("TN505", "TN513")  # notes on probabilities of nothing or next to it, which mixing takes away


@dataclass(frozen=True)
class AutoSpec(CalibratorSpec):
    """The simplest calibrator that is good and has proved itself on rows it has not seen; else the identity.

    In `folds` folds, stratified by the most probable class: without each fold the candidates are fitted and one is
    chosen, by log loss on further folds and the one-standard-error rule, and the fold says what the choice gains. A
    one-sided test at level `alpha` of these gains, on all rows, compares them with what redrawn labels would give. If
    it confirms a gain, choice and fit are made once more on all rows ("procedure confirmed"); if not, a temperature
    is fitted where that is confirmed by itself, as one parameter, named beforehand, is on fewer rows. `candidates` are
    names or rules; None is every calibrator that is a `candidate` and suits the number of classes, with its defaults:
    of those that are alike, one. Clusters are never split. The map is mixed with 1/(n + 1) of the uniform, so that its
    log loss is finite whatever comes. Which rows fall where depends on their order and on `rng`. Cost: 10 fits of each
    candidate to three fifths of the rows and 6 to more of them; those that are far behind after the first 5 are left
    there. Source: nested cross-validation (Stone 1974; Bayle et al. 2020) of a choice with Breiman et al.'s (1984)
    one-standard-error rule, with the score test in the direction of the map that was fitted on other rows.

    >>> P, Y = np.array([[0.1, 0.9]] * 400), np.eye(2)[[1, 1, 1, 0] * 100]
    >>> AutoSpec().fit(P, Y, np.ones(400)).describe()
    'T = 2.00'
    """

    name: ClassVar[str] = "auto"
    complexity: ClassVar[int] = 100
    keeps_argmax: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = True
    exempt: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("row order", "weights", "class order"),
        "which rows are in which fold is drawn over the rows in their order",
    )
    candidates: Annotated[tuple[str | CalibratorSpec, ...] | None, OWN] = None
    folds: Folds = 5
    alpha: Level = 0.05
    rng: Seed | np.random.Generator = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._candidate_specs()

    def settings(self) -> dict[str, Any]:
        """The settings, with the candidates by name."""
        return {**super().settings(), "candidates": tuple(spec.name for spec in self._candidate_specs())}

    def declined(self, n: int, doubts: Sequence[Note]) -> tuple[CalibrationMap, Recalibration] | None:
        """The identity where the rows look like labels, or like those of other classes: no fix mends that."""
        still = IdentityMap()
        return (
            (still, Recalibration(None, None, still.name, still.describe(), n, 0, None, tuple(doubts)))
            if doubts
            else None
        )

    def _candidate_specs(self) -> list[CalibratorSpec]:
        candidates = self.candidates
        if candidates is None:
            candidates = tuple(name for name in CALIBRATORS.names() if CALIBRATORS.load(name).candidate)
        if isinstance(candidates, (list, tuple)):
            candidates = tuple(
                candidate.made() if hasattr(candidate, "made") else candidate for candidate in candidates
            )
        if not isinstance(candidates, tuple) or not all(
            isinstance(candidate, (str, CalibratorSpec)) for candidate in candidates
        ):
            raise InputError(
                "TO203",
                "candidates must be a list of names or rules.",
                describe(candidates),
                "For instance ['temperature'].",
            )
        specs = [CALIBRATORS.load(candidate)() if isinstance(candidate, str) else candidate for candidate in candidates]
        if any(isinstance(spec, AutoSpec) for spec in specs):
            raise InputError("TO203", "auto cannot be its own candidate.", describe(candidates), "Leave it out.")
        if len({(spec.name, repr(spec)) for spec in specs}) < len(specs):
            raise InputError("TO203", "A candidate is given twice.", describe(candidates), "Name each once.")
        if on_logits := [spec.name for spec in specs if getattr(spec, "logits", False)]:
            raise InputError(
                "TO203",
                "Candidates are compared on probabilities, and a map of logits is none of these.",
                f"{on_logits[0]} with logits=True",
                "Leave logits out, or fit it by name and compare log losses on other rows.",
            )
        return specs

    def _suited(self, n: int, k: int) -> list[CalibratorSpec]:
        """The candidates for n rows of K classes; one that was asked for by name must fit."""
        specs = self._candidate_specs()
        if self.candidates is None:
            return [spec for spec in specs if spec.suits(n, k)]
        for spec in specs:
            spec.check_classes(k)
        return specs

    def _some(self, P: Probabilities, cluster: Array | None, rng: np.random.Generator) -> Array:
        """The rows on which candidates are compared and confirmed: all, or as many as tell them apart."""
        share = MAX_PROBABILITIES / (P.shape[0] * P.shape[1])
        if share >= 1:
            return np.arange(len(P))
        return np.flatnonzero(stratified_holdout(probabilities(P), share, cluster, rng))

    def _or_one_parameter(
        self,
        rows: CrossFittingRows,
        specs: Sequence[CalibratorSpec],
        crossed: Sequence[Array | None],
        choice: Choice,
        proof: Confirmation,
    ) -> tuple[Choice, Confirmation]:
        """What was chosen, if it is confirmed; else the candidate of one parameter, if that is or needs fewer rows."""
        first = next((i for i, spec in enumerate(specs) if spec.complexity == _ONE_PARAMETER), None)
        if first is None or (proof.confirmed and choice.spec.name != "identity"):
            return choice, proof
        cross_fitted = crossed[first]
        logs = rows.crossed(specs[first]) if cross_fitted is None else cross_fitted
        alone = confirm(
            rows.P, logs, rows.Y, rows.w, rows.shares(), alpha=self.alpha, cluster=rows.cluster, one_parameter=True
        )
        other = np.inf if choice.spec.name == "identity" else proof.required_rows
        better = alone.confirmed or (alone.outcome == NOT_ENOUGH_ROWS and alone.required_rows < other)
        return (choice.of(specs[first]), alone) if better else (choice, proof)

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CalibrationMap:
        """The map that is applied in the end."""
        return self.explained(P, Y, w)[0]

    def explained(
        self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None
    ) -> tuple[CalibrationMap, Recalibration]:
        """The map and the whole report."""
        live = w > 0
        P, Y, w, cluster = P[live], Y[live], w[live], None if cluster is None else cluster[live]
        specs = self._suited(len(P), P.shape[1])
        if isinstance(P, LogProbabilities):
            specs = [lower_min_prob_for_logs(spec) for spec in specs]
        min_prob = max((spec.min_prob for spec in specs if hasattr(spec, "min_prob")), default=None)
        if why := _too_little(Y, cluster):
            still = IdentityMap()
            return still, Recalibration(
                None, None, still.name, still.describe(), len(P), 0, min_prob, (Note("TN507", why),)
            )
        rng, specs = as_generator(self.rng), sort_by_complexity(specs)
        some = self._some(P, cluster, rng)
        within = None if cluster is None else cluster[some]
        rows = assign_folds(P[some], Y[some], w[some], max(self.folds, _MIN_FOLDS), within, rng)
        inner = choose_without_each_fold(rows, specs)
        crossed = [None if i in inner.dropped else rows.crossed(spec) for i, spec in enumerate(specs)]
        choice = choose_by_log_loss(rows, specs, crossed, inner)
        proof = confirm(
            rows.P,
            _assemble_nested_predictions(rows, crossed, inner),
            rows.Y,
            rows.w,
            rows.shares(),
            alpha=self.alpha,
            cluster=within,
        )
        choice, proof = self._or_one_parameter(rows, specs, crossed, choice, proof)
        if len(some) < len(P):
            proof = proof.of_all(float(w @ log_score(logs_of(P), Y) / w.sum()))
        if proof.outcome == NO_GAIN:  # the candidate that looks best is none
            choice = choice.of(IdentitySpec())
        confirmed = proof.confirmed and choice.spec.name != "identity"
        inputs = input_for(choice.spec, P)
        calibration_map: CalibrationMap = (
            choice.spec.explained(inputs, Y, w, cluster)[0] if confirmed else IdentityMap()
        )
        notes = (
            [n for n in choice.spec.notes(calibration_map, inputs, Y, w) if n.code not in _RULED_OUT]
            if confirmed
            else []
        )
        notes += _outcome_notes(choice, proof, self.alpha)
        if len(some) < len(P):
            text = f"The candidates were compared on {len(some):,} of the {len(P):,} rows"
            notes.append(Note("TN539", text + ("; the chosen one was fitted on all." if confirmed else ".")))
        final: CalibrationMap = MixedMap(calibration_map, uniform_share(len(P))) if confirmed else calibration_map
        return final, Recalibration(
            choice, proof, final.name, final.describe(), len(P), len(some), min_prob, tuple(notes)
        )


def _assemble_nested_predictions(rows: CrossFittingRows, crossed: Sequence[Array | None], inner: NestedChoice) -> Array:
    """What the whole procedure says of each row without its fold: the logarithms of what was chosen there, (n, K)."""
    out = np.empty(rows.Y.shape)
    for f, i in enumerate(inner.chosen):
        logs, in_fold = crossed[i], rows.fold == f
        assert logs is not None
        out[in_fold] = logs[in_fold]
    return out


def _too_little(Y: Array, cluster: Array | None) -> str:
    n = count_units(len(Y), cluster)
    kind = "rows" if cluster is None else "clusters"
    if n < _MIN_ROWS:
        return f"{n} {kind} are too few to choose and confirm a fix (at least {_MIN_ROWS}); nothing is changed."
    if (Y.sum(axis=0) >= 2).sum() < 2:
        return "Fewer than two classes came at least twice, so no fix can be confirmed; nothing is changed."
    return ""


def _outcome_notes(choice: Choice, proof: Confirmation, alpha: float) -> list[Note]:
    scored = Note(
        "TN508",
        f"Every fit is mixed with {choice.mixing:.2g} of the uniform distribution, so that its log loss is finite; where fits are compared with the probabilities as they are, those are limited in the same way.",
    )
    name = choice.spec.name
    gain = f"{format_number(proof.gain)} nats per row, {format_percent(1 - 2 * alpha)} interval {format_number(proof.low)} to {format_number(proof.high)}, p={format_number(proof.pvalue)}"
    if name != "identity" and proof.confirmed:
        text = f"Confirmed: on rows that neither fit nor choice had seen the gain is {gain}. That p is of the probabilities as they are: how surprising the gain would be if they were right. Applied is {name}, fitted on all rows and mixed with a little of the uniform distribution."
        return [scored, Note("TN509", text)]
    power_text = f"A gain of {format_number(proof.detectable)} nats per row by one parameter would have been confirmed four times in five at level {format_percent(alpha)}."
    if name != "identity" and proof.outcome == NOT_ENOUGH_ROWS:
        text = f"Not confirmed: too few rows. The gain by {name} is {gain}; if that is what it gains, about {round_to_two_digits(proof.required_rows):,} rows would confirm it four times in five. {power_text}"
        return [scored, Note("TN543", text)]
    return [
        scored,
        Note(
            "TN510",
            f"No gain to be had: choosing and fitting on some of the rows does not do better on the others. {power_text}",
        ),
    ]
