"""Add the states of two monitors, and refuse sums in which rows would count twice."""

from __future__ import annotations

from dataclasses import fields, replace

from trueodds.core.errors import InputError, describe
from trueodds.monitoring.cohort_tally import MIN_COMMON, MIN_COMMON_SHARE
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds.monitoring.state import MonitorState


def add_states(a: MonitorState, b: MonitorState) -> MonitorState:
    """Return the state of the rows of both; raise TO904 or TO908 if they cannot be added."""
    _check_mergeable(a, b)
    is_judged = [bool(state.judgment.cohorts or state.judgment.epoch.number) for state in (a, b)]
    if all(is_judged):
        raise InputError(
            "TO908",
            "Two monitors that have judged cohorts, or were reset, cannot be added.",
            f"{len(a.judgment.cohorts):,} and {len(b.judgment.cohorts):,} judged cohorts",
            "Add them before the first report, or add a monitor of later cohorts without a report.",
        )
    judgment = (a if is_judged[0] else b).judgment
    _refuse_common_rows(a, b)
    opened = {**b.open, **a.open}
    for number in a.open.keys() & b.open.keys():
        opened[number] = a.open[number] + b.open[number]
    if judgment.last is not None and opened and (first := min(opened)) <= judgment.last:
        period = a.settings.period
        raise InputError(
            "TO908",
            "A monitor with judged cohorts can take later cohorts only.",
            f"cohort {period.label(first)}, after {period.label(judgment.last)} was judged",
            "Add all parts of a cohort before the report that judges it.",
        )
    moments = [moment for moment in (a.as_of, b.as_of) if moment is not None]
    model, opened = a.model or b.model, dict(sorted(opened.items()))
    return MonitorState(a.settings, model, max(moments, default=None), opened, judgment, {**b.columns, **a.columns})


def _check_mergeable(a: MonitorState, b: MonitorState) -> None:
    """Raise TO904 if two monitors differ in their settings or in their model."""
    for field in fields(MonitorSettings):
        values = getattr(a.settings, field.name), getattr(b.settings, field.name)
        if values[0] != values[1]:
            texts = [state.settings.describe_setting(field.name) for state in (a, b)]
            got = f"{field.name} {texts[0]} and {texts[1]}"
            raise InputError("TO904", "Monitors with different settings cannot be added.", got, "Use the same ones.")
    if a.model is None or b.model is None or a.model == b.model:
        return
    if replace(a.model, centers=b.model.centers) == b.model:
        got = f"{describe(list(a.model.centers))} and {describe(list(b.model.centers))}"
        raise InputError(
            "TO904",
            "The slopes of the two monitors turn about different centers, in log odds.",
            got,
            "Set ⟨center⟩ to the mean probability when creating them, for instance ⟨center=0.1⟩.",
        )
    raise InputError(
        "TO904", "Monitors of different models cannot be added.", f"{a.model.classes} and {b.model.classes}",
        "Add the monitors of one model.",
    )  # fmt: skip


def _refuse_common_rows(a: MonitorState, b: MonitorState) -> None:
    """Raise TO908 if open cohorts of two monitors have rows in common, whether or not their labels are the same.

    Ids show a common row with certainty. Rows without ids are compared by their times and predictions, which different
    rows may share, so that the parts must be the same for the most.
    """
    n_common = n_comparable = 0
    label = ""
    for number in sorted(a.open.keys() & b.open.keys()):
        one, other = a.open[number], b.open[number]
        label = a.settings.period.label(number)
        if one.has_ids != other.has_ids:
            raise InputError(
                "TO908",
                "One of the two monitors was given ids, so it is not known whether they have the same rows.",
                f"ids in one of two parts of cohort {label}",
                "Give ids to both or to none.",
            )
        common, comparable, is_equal = one.common_hashes(other)
        n_common, n_comparable = n_common + common, n_comparable + comparable
        if is_equal or (one.has_ids and common):
            break
    else:
        if n_common < MIN_COMMON or n_common < MIN_COMMON_SHARE * n_comparable:
            return
    raise InputError(
        "TO908",
        "Both monitors have the same rows, which would count twice; their labels may differ.",
        f"{n_common:,} of {n_comparable:,} sampled rows, in cohorts up to {label}",
        "Give all files to one call of ⟨update⟩, or add monitors of disjoint parts. If the rows are different but have"
        " the same times and predictions, pass ⟨ids=⟩.",
    )
