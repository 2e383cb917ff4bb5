"""Judge the cohorts whose horizon has passed, in their order, and stop at missing labels."""

from __future__ import annotations

from dataclasses import replace

from trueodds.core.errors import InputError
from trueodds.monitoring.cohort_tally import CohortTally
from trueodds.monitoring.cohorts import format_moment
from trueodds.monitoring.state import MonitorState


def judge_due_cohorts(
    state: MonitorState, before: int | None = None
) -> tuple[MonitorState, list[int], InputError | None]:
    """Return the state after the judgment of the cohorts that are due.

    Parameters
    ----------
    state : MonitorState
        The state.
    before : int, optional
        First cohort that is not judged.

    Returns
    -------
    state : MonitorState
        The state, in which the judged cohorts are not open.
    partial : list of int
        Cohorts that were judged by rows that had been extracted before the cohort was over.
    problem : InputError or None
        TO907 for the first cohort that lacks labels, and was not judged.
    """
    partial: list[int] = []
    if state.model is None or state.as_of is None:
        return state, partial, None
    settings, as_of, alternatives = state.settings, state.as_of, state.model.alternatives(state.settings)
    opened, judgment, problem = dict(state.open), state.judgment, None
    for number in list(opened):
        if before is not None and number >= before:
            break
        tally = opened[number]
        has_passed = settings.period.has_passed(number, settings.horizon, as_of)
        is_over = settings.period.has_passed(number, 0, as_of)
        if not has_passed and not (settings.complete and is_over and not tally.unlabeled):
            break
        if not judgment.counts(number):
            judgment = judgment.skip(number, tally)
        else:
            if has_passed and (problem := _missing_labels(state, number, tally, judgment.epoch.alarm_cohort)):
                break
            if not settings.period.has_passed(number, 0, tally.as_of):
                partial.append(number)
            judgment = judgment.judge(number, tally, settings, alternatives, state.model.views)
        del opened[number]
    return replace(state, open=opened, judgment=judgment), partial, problem


def _missing_labels(
    state: MonitorState, number: int, tally: CohortTally, alarm_cohort: int | None
) -> InputError | None:
    """Return TO907 if labels are missing that would have to be there, or whose extraction came too early."""
    settings = state.settings
    if not tally.unlabeled or settings.missing == "least":
        return None
    is_early = not settings.period.has_passed(number, settings.horizon, tally.as_of)
    if settings.missing != "refuse" and not is_early:
        return None
    label = settings.period.label(number)
    problem = "Labels are missing in a cohort whose horizon has passed"
    got = f"{tally.unlabeled:,} of {tally.rows:,} rows in cohort {label}"
    if is_early:
        problem += " since they were extracted"
        got += f", extracted on {format_moment(tally.as_of)}"
        fix = f"Give the rows of {label} again with their labels, or start with ⟨missing='least'⟩."
    else:
        fix = (
            "Add them, or start with ⟨missing='least'⟩ (always valid), ⟨missing='exclude'⟩ (valid if missing does not"
            " depend on the outcome) or ⟨missing='no-event'⟩ (if missing means no event)."
        )
    if alarm_cohort is not None:
        problem += f", and cohort {settings.period.label(alarm_cohort)} raised an alarm"
        fix += " The alarm stands, whatever the labels: recalibrate, and use ⟨monitor.reset('recalibrated')⟩."
    return InputError("TO907", f"{problem}.", got, fix)
