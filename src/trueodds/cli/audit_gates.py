"""Estimates that the gates of `trueodds audit` bound but an audit does not report, such as that of `smece>0.05`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueodds.cli import gate
from trueodds.core.errors import InputError

if TYPE_CHECKING:
    from trueodds.core.results import Estimate

AUDITED_ESTIMATORS = ("ece", "brier", "log_loss")  # those that every audit measures, as a test checks


class ComputedGateValues:
    """Numbers that gates bound but the audit does not report, computed on the same rows, each only once.

    `settings` are those of the audit: `mode`, `weight_kind`, `level` and `rng`; `crossings` and `max_groups` are those
    that choose its groups.
    """

    def __init__(
        self, data: Any, settings: Mapping[str, Any], crossings: int = 1, max_groups: int | None = None
    ) -> None:
        self._data, self._settings, self._crossings, self._max_groups = data, settings, crossings, max_groups
        self._estimates: dict[tuple[str, str | None], Estimate] = {}
        self._group_estimates: dict[str, dict[str, Estimate]] = {}

    def prepare(self, gates: Sequence[gate.Gate]) -> None:
        """Compute the estimates before the audit starts, so that invalid gates are rejected first."""
        for condition in gates:
            try:
                if condition.group is not None and condition.name != "ece":
                    self.measure_groups(condition)
                elif (
                    condition.operator
                    and condition.group is None
                    and condition.name not in gate.AUDIT_SCOPE.numbers
                    and not _is_reported(condition)
                ):
                    self.measure(condition)
            except InputError as problem:
                if problem.code != "TO611":  # a valid gate that cannot be evaluated does not replace the report
                    raise

    def measure(self, condition: gate.Gate) -> Estimate:
        key = condition.name, condition.lens
        if key not in self._estimates:
            import trueodds as to

            name = self._estimator_of_answers(condition)
            self._estimates[key] = to.measure(self._rows, name, lens=condition.lens, **self._settings)
        return self._estimates[key]

    def measure_groups(self, condition: gate.Gate) -> Mapping[str, Estimate]:
        """Return the estimate of every group that a gate bounds, with the numbers of `trueodds groups`."""
        if condition.name not in self._group_estimates:
            from trueodds.api.by_group import estimate_by_group

            if self._n_questions > self._rows.n and condition.coverage is not None:
                problem, fix = "the questions without an answer have no group", "Use trueodds groups, for the answers."
                raise condition.not_evaluable_error(problem, fix)
            self._group_estimates[condition.name] = estimate_by_group(
                self._rows,
                condition.name,
                self._crossings,
                self._settings["level"],
                self._settings["rng"],
                self._max_groups,
            )
        return self._group_estimates[condition.name]

    def _estimator_of_answers(self, condition: gate.Gate) -> str:
        """Return the name of the estimator of a gate. The coverage of a risk becomes a share of the answers.

        A gate states it as a share of all questions.
        """
        if condition.coverage is None or self._n_questions <= self._rows.n:
            return condition.name
        from trueodds.lenses.selective_risk import COVERAGE_TOLERANCE

        share = condition.coverage * self._n_questions / self._rows.n
        if share > 1 + COVERAGE_TOLERANCE:  # no answers to so many questions
            got = f"answers to {self._rows.n:,} of {self._n_questions:,} questions"
            raise condition.not_evaluable_error(got, "Name a smaller coverage.")
        return f"{condition.base_name}@{min(share, 1.0)!r}"

    @property
    def _n_questions(self) -> int:
        """Number of questions, including those without an answer; that of the rows if these are no answers."""
        return int(getattr(self._data, "n_queries", None) or self._rows.n)

    @cached_property
    def _rows(self) -> Any:
        """The predictions, or their tally."""
        from trueodds.api.arguments import resolve_data

        return resolve_data(self._data, self._settings["mode"], self._settings["weight_kind"])


def _is_reported(condition: gate.Gate) -> bool:
    """Return whether an audit reports the number that a gate bounds (as null if it is infinite)."""
    audited_lenses = (None, "positive", "confidence", "classwise", "canonical")
    return condition.name in AUDITED_ESTIMATORS and condition.lens in audited_lenses
