"""Make the report of a monitor from its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.formatting import format_count, format_first
from trueodds.core.typing import Array
from trueodds.monitoring.capital import newly_invested
from trueodds.monitoring.cohort_tally import ALL_ROWS
from trueodds.monitoring.cohorts import format_moment
from trueodds.monitoring.evidence import EVENTS, EXPECTED, UNLABELED_EXPECTED, VARIANCE
from trueodds.monitoring.judgment import MAX_CONTRIBUTIONS, Contribution, totals_of
from trueodds.monitoring.monitor_report import (
    Advice,
    CohortRow,
    MonitorReport,
    MonitorStatus,
    PredictionDrift,
    advise,
    total_variation,
)
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds.monitoring.onset import Onset, estimate_error, find_onset
from trueodds.monitoring.state import MonitorState

IMPOSSIBLE_ADVICE = (
    "Look at the rows whose observed class had predicted probability 0: is the label wrong, or the input new? Then give"
    " every class a small probability."
)
MAX_NAMED_GROUPS = 3  # number of groups that a note names
N_COMPARED = 16  # number of first and of latest cohorts whose predictions are compared


def report(state: MonitorState, notes: tuple[Note, ...]) -> MonitorReport:
    """Return the report; `notes` are those of the last update."""
    judgment, settings, model = state.judgment, state.settings, state.model
    epoch = judgment.epoch
    alarm = epoch.alarm_cohort is not None
    contributions: tuple[Contribution, ...] = ()
    log_evidence = 0.0
    onset = error = None
    advice = Advice("nothing", "Nothing to do.")
    history = [sums for sums in judgment.history if sums.epoch == epoch.number]
    view, share = 0, 1.0
    if model is not None and history:
        alternatives = model.alternatives(settings)
        log_evidence = max(judgment.log_evidence_by_thread(settings, alternatives))
        # Of an alarm that is long past, the evidence may have changed since.
        contributions = epoch.contributions or judgment.contributions(settings, alternatives, model.views)
        contributions = contributions[:MAX_CONTRIBUTIONS]
        name = ALL_ROWS
        if alarm and not epoch.contributions:
            advice = Advice("recalibrate", IMPOSSIBLE_ADVICE)
        elif alarm:
            largest = contributions[0]
            view, name = model.views.index(largest.view), largest.group or ALL_ROWS
            has_shock = bool(settings.shock_sd)
            if found := find_onset(history, name, view, alternatives[view], has_shock=has_shock):
                since, earliest, latest = (settings.period.label(history[position].first) for position in found)
                onset = Onset(since, earliest, latest, largest.view, largest.group)
            start = found[0] if found else 0
            n_before = sum(sums.n_cohorts for sums in history[:start])
            share = newly_invested(n_before) * judgment.shares(settings)[name] / model.n_views
            history = history[start:]
            advice = advise(largest, onset, state.columns)
        error = estimate_error(history, name, view, model.views[view], settings.alpha, share)
    return MonitorReport(
        alarm=alarm,
        log_evidence=log_evidence,
        status=_status(state),
        onset=onset,
        error=error,
        contributions=contributions,
        cohorts=_cohort_rows(state, view),
        drift=_drift(state, view),
        advice=advice,
        settings=settings.to_json(),
        assumptions=_assumptions(settings),
        notes=(*notes, *_notes(state)),
    )


def has_evidence(state: MonitorState) -> bool:
    """Return whether a judged row of this epoch has a label, or gets one because it is missing."""
    epoch = state.judgment.epoch.number
    judged = [cohort for cohort in state.judgment.cohorts if cohort.epoch == epoch]
    is_filled = state.settings.missing == "no-event"
    return any(cohort.rows > (0 if is_filled else cohort.unlabeled) for cohort in judged)


def _status(state: MonitorState) -> MonitorStatus:
    settings, epoch = state.settings, state.judgment.epoch
    period = settings.period
    first_counted = next((number for number in state.open if state.judgment.counts(number)), None)
    next_due: str | None = None
    if first_counted is not None:
        end: Any = period.start(first_counted + 1)
        wait: Any = np.timedelta64(settings.horizon, "s") if isinstance(end, np.datetime64) else settings.horizon
        next_due = format_moment(end + wait)
    last = state.judgment.last
    return MonitorStatus(
        as_of=None if state.as_of is None else format_moment(state.as_of),
        epoch=epoch.number,
        reset_reason=epoch.reason,
        judged=epoch.n_cohorts,
        open=len(state.open),
        open_rows=sum(tally.rows for tally in state.open.values()),
        open_unlabeled=sum(tally.unlabeled for tally in state.open.values()),
        last_judged=None if last is None else period.label(last),
        next_due=next_due,
        alarm_cohort=None if epoch.alarm_cohort is None else period.label(epoch.alarm_cohort),
        max_log_evidence=epoch.max_log_evidence,
        impossible=epoch.impossible,
    )


def _cohort_rows(state: MonitorState, view: int) -> tuple[CohortRow, ...]:
    """Return the table of cohorts, with the sums of one view."""
    judged, rows, first = state.judgment.cohorts, [], 0
    for sums in state.judgment.history:
        members = judged[first : first + sums.n_cohorts]
        first += sums.n_cohorts
        row = _cohort_row(state, sums.first, sums.totals[ALL_ROWS][view])
        counts = {name: sum(getattr(cohort, name) for cohort in members) for name in ("rows", "unlabeled")}
        last = state.settings.period.label(sums.last)
        evidence = members[-1].log_evidence
        rows.append(
            replace(
                row, last=last, status="judged", epoch=sums.epoch, cohorts=len(members), log_evidence=evidence, **counts
            )
        )
    for number, tally in state.open.items():
        row = _cohort_row(state, number, totals_of(tally.sums[ALL_ROWS])[view])
        rows.append(replace(row, rows=tally.rows, unlabeled=tally.unlabeled))
    return tuple(rows)


def _cohort_row(state: MonitorState, number: int, totals: Array) -> CohortRow:
    """Return the line of an open cohort, without its numbers of rows."""
    label = state.settings.period.label(number)
    return CohortRow(
        cohort=label,
        last=label,
        status="open",
        epoch=None,
        cohorts=1,
        rows=0,
        unlabeled=0,
        observed=float(totals[EVENTS]),
        expected=float(totals[EXPECTED]),
        variance=float(totals[VARIANCE]),
        log_evidence=None,
    )


def _drift(state: MonitorState, view: int) -> PredictionDrift | None:
    """Compare the predictions of the first cohorts of the epoch with those of the latest, open ones included."""
    judgment = state.judgment
    parts = [
        (sums.n_cohorts, sums.totals[ALL_ROWS][view], sums.cell_rows[view])
        for sums in judgment.history
        if sums.epoch == judgment.epoch.number
    ]
    parts += [
        (1, totals_of(tally.sums[ALL_ROWS])[view], tally.sums[ALL_ROWS][view].cell_rows)
        for number, tally in state.open.items()
        if judgment.counts(number)
    ]
    if len(parts) < 2:
        return None
    (before, cells_before), (now, cells_now) = _take(parts), _take(parts[::-1])
    rows_before, rows_now = float(cells_before.sum()), float(cells_now.sum())
    if not rows_before or not rows_now:
        return None
    return PredictionDrift(
        mean_before=float(before[EXPECTED] + before[UNLABELED_EXPECTED]) / rows_before,
        mean_now=float(now[EXPECTED] + now[UNLABELED_EXPECTED]) / rows_now,
        distance=total_variation(cells_before, cells_now),
        rows_before=rows_before,
        rows_now=rows_now,
    )


def _take(parts: list[tuple[int, Any, Any]]) -> tuple[Any, Any]:
    """Return the sums of the first `N_COMPARED` cohorts, at most half of all."""
    n_wanted = min(N_COMPARED, max(1, sum(n for n, _, _ in parts) // 2))
    totals, cells = np.zeros_like(parts[0][1]), np.zeros_like(parts[0][2])
    taken = 0
    for n, part_totals, part_cells in parts:
        if taken >= n_wanted:
            break
        totals, cells, taken = totals + part_totals, cells + part_cells, taken + n
    return totals, cells


def _assumptions(settings: MonitorSettings) -> tuple[str, ...]:
    """State the guarantee, and what it assumes."""
    margin = f"a factor of {settings.odds_margin:g} in the odds" if settings.odds_margin > 1 else "nothing"
    guarantee = (
        f"while every probability is wrong by at most {margin}, an alarm is raised with a probability of at most"
        f" {settings.alpha:g} in an epoch, however often one looks."
    )
    texts = [
        guarantee,
        "Labels of a cohort are independent, given its predictions and the earlier cohorts."
        if not settings.shock_sd
        else f"Labels of a cohort are independent, except for a shock with standard deviation {settings.shock_sd:g} of"
        " their log odds.",
        "Outcomes do not share shocks across cohorts whose horizons overlap (otherwise use ⟨overlap='threads'⟩)."
        if settings.overlap == "independent"
        else "Predictions of a cohort are made at its start; cohorts whose horizons overlap may share shocks.",
        {
            "refuse": "Every row has its label when its horizon has passed.",
            "least": "Rows without a label have the one that is the least evidence.",
            "exclude": "Whether a label is missing does not depend on the outcome.",
            "no-event": "A label that is missing when the horizon has passed means no event.",
        }[settings.missing],
        "Labels do not change after the horizon, and the model's decisions do not change the outcomes.",
    ]
    return tuple(texts)


def _notes(state: MonitorState) -> list[Note]:
    settings, judgment, opened = state.settings, state.judgment, state.open.values()
    notes = []
    if not has_evidence(state):
        what = "judged row has a label" if judgment.epoch.n_cohorts else "cohort has been judged"
        notes.append(Note("TN905", f"No {what} in this epoch, so there is no evidence yet."))
    seen = {name for sums in judgment.history for name in sums.totals}
    if absent := [name for name in judgment.epoch.groups if name not in seen]:
        number, names = format_count(len(absent), "declared group"), format_first(absent, MAX_NAMED_GROUPS)
        notes.append(Note("TN910", f"The monitor has {number} without a row so far: {names}."))
    open_rows = sum(tally.rows for tally in opened)
    if settings.horizon and open_rows and not sum(tally.unlabeled for tally in opened):
        text = (
            f"None of the {open_rows:,} rows in {len(opened):,} open cohorts lacks its label. Predictions were probably"
            " joined with the labels that exist; this selects rows by their outcome and raises false alarms."
        )
        notes.append(Note("TN902", text))
    judged_in_epoch = [cohort for cohort in judgment.cohorts if cohort.epoch == judgment.epoch.number]
    unlabeled = sum(cohort.unlabeled for cohort in judged_in_epoch)
    if unlabeled:
        rows = sum(cohort.rows for cohort in judged_in_epoch)
        text = f"{unlabeled:,} of {rows:,} judged rows had no label; ⟨missing={settings.missing!r}⟩ applied."
        notes.append(Note("TN906", text))
    if judgment.epoch.impossible:
        text = (
            f"{judgment.epoch.impossible:,.0f} outcomes had predicted probability 0, which no calibrated model allows."
        )
        notes.append(Note("TN907", text))
    if judgment.epoch.unmonitored_groups:
        text = (
            "The reserve of capital for new groups is used up, so that later ones are monitored only within all rows:"
            f" {judgment.epoch.unmonitored_groups:,} groups by cohort."
        )
        notes.append(Note("TN904", text))
    return notes
