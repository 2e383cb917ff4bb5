"""The class `Monitor`: raises an alarm when the probabilities of a deployed model stop being true."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core import json_files
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_count, format_first
from trueodds.core.settings import check
from trueodds.core.signatures import checks_arguments
from trueodds.data.arrays import check_one_value_per_row
from trueodds.data.predictions import Predictions
from trueodds.monitoring import report_of_state
from trueodds.monitoring.cohort_tally import CohortTally, NotInOrder, RowBatch, tally_batches
from trueodds.monitoring.cohorts import Moment, UnitName, format_moment, read_moment
from trueodds.monitoring.judgment import JudgedCohort, Judgment
from trueodds.monitoring.monitor_report import MonitorReport
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds.monitoring.monitored_model import MonitoredModel
from trueodds.monitoring.state import (
    MonitorState,
    add_states,
    invalid_state,
    state_from_json,
    state_to_json,
    write_state,
)

MAX_NAMED_COHORTS = 3  # number of cohorts that a note names


class Monitor:
    """Monitor the calibration of a deployed model, whose labels arrive late.

    Rows are grouped into cohorts by the time of their prediction. A cohort counts, once, when its horizon has passed.
    Every cohort multiplies an e-value, the evidence that the predicted probabilities are wrong by more than the margin.
    While they are not, an alarm is raised with a probability of at most `alpha`, however often one looks.

    Parameters
    ----------
    horizon : str or timedelta, default="30d"
        Time after a prediction at which its label counts: hours, days or weeks. With integers as times, an integer.
    unit : {"hour", "day", "week", "month", "integer"}, default="day"
        Unit of time of a cohort. Weeks begin on Monday. With "integer", every value of `time` is a cohort.
    alpha : float, default=0.05
        Probability of a false alarm in the lifetime of a model, or until a reset.
    odds_margin : float, default=1.05
        Odds ratio up to which predicted odds may be wrong without an alarm; 1 for the exact null hypothesis.
    lens : str, optional
        The claim to monitor. The default is ``"positive"`` for two classes, ``"confidence"`` if only confidences are
        given, and otherwise ``"classwise"``.
    group : str, sequence or mapping, optional
        Group columns whose values are monitored, too. A mapping of columns to values declares the groups; by default,
        the first judged cohort declares them.
    center : float, optional
        Probability about which slopes turn, in addition to 0.5. The default is the mean probability of the first call.
    missing : {"refuse", "least", "exclude", "no-event"}, default="refuse"
        What happens to rows without a label when their horizon has passed: an error; the label that is the least
        evidence, which is always valid; they do not count, which is valid only if missing does not depend on the
        outcome; or the event did not occur.
    overlap : {"independent", "threads"}, default="independent"
        Whether outcomes are independent although horizons overlap. With "threads", only cohorts whose horizons do
        not overlap are combined, which is valid if outcomes accrue over the horizon and share shocks.
    shock_sd : float, default=0.0
        Standard deviation of the log odds that the rows of a cohort share, such as an epidemic or a holiday.
    complete : bool, default=False
        Whether a cohort counts before its horizon when it and all earlier ones have all their labels.
    weight_kind : {"importance", "frequency"}, default="importance"
        Importance weights must be at most 1; frequencies count rows.

    Notes
    -----
    The evidence is a mixture over all starts of a drift and over errors of the level, of the slope, and of the scores
    in 14 cells, in all rows and in each group.
    The guarantee holds if the labels of a cohort are independent given the predictions and the earlier cohorts, and
    if labels that are missing are treated as `missing` says. Cost: about 0.2 µs per row and view. Open cohorts are
    sums: `a + b` is the monitor of all rows. Cohorts are judged in their order by `report`, and it does not matter how
    often it is called. A saved state with two classes has about 11 kB, 1 to 6 kB for each open cohort, and 0.1 to 0.4
    kB for each judged one; every class and group multiplies the first two numbers.

    See Also
    --------
    test : Test the calibration of one data set.
    load : Load a saved monitor.

    References
    ----------
    .. [1] Ramdas, Grünwald, Vovk and Shafer (2023), "Game-theoretic statistics and safe anytime-valid inference".

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange("2026-01-01", "2026-03-02", dtype="datetime64[D]"), 200)
    >>> p = rng.beta(2, 8, day.size)
    >>> y = rng.random(day.size) < np.where(day < np.datetime64("2026-01-20"), p, 1.4 * p)
    >>> monitor = to.Monitor(horizon="7d")
    >>> report = monitor.update(to.Predictions(y, p), time=day, as_of="2026-03-10").report()
    >>> report.alarm, report.since
    (True, '2026-01-20')
    """

    @checks_arguments
    def __init__(
        self,
        horizon: Any = "30d",
        unit: UnitName = "day",
        *,
        alpha: float = 0.05,
        odds_margin: float = 1.05,
        lens: str | None = None,
        group: Any = None,
        center: float | None = None,
        missing: Literal["refuse", "least", "exclude", "no-event"] = "refuse",
        overlap: Literal["independent", "threads"] = "independent",
        shock_sd: float = 0.0,
        complete: bool = False,
        weight_kind: Literal["importance", "frequency"] = "importance",
    ) -> None:
        settings = MonitorSettings(
            horizon=horizon, unit=unit, alpha=alpha, odds_margin=odds_margin, lens=lens, group=group, center=center,
            missing=missing, overlap=overlap, shock_sd=shock_sd, complete=complete, weight_kind=weight_kind,
        )  # fmt: skip
        self._set(MonitorState(settings, None, None, {}, Judgment()), (), {})

    def _set(self, state: MonitorState, notes: tuple[Note, ...], saved: Mapping[str, str]) -> None:
        self._state = state
        self._notes = notes  # of the last update
        self._saved = dict(saved)  # checksum of each file from or to which this state was read or written

    @property
    def settings(self) -> MonitorSettings:
        """The settings, which cannot change."""
        return self._state.settings

    @property
    def as_of(self) -> str | None:
        """The latest moment at which labels were extracted; None before the first rows."""
        return None if self._state.as_of is None else format_moment(self._state.as_of)

    @property
    def n_open(self) -> int:
        """Number of cohorts that are not judged."""
        return len(self._state.open)

    @property
    def n_judged(self) -> int:
        """Number of judged cohorts."""
        return len(self._state.judgment.cohorts)

    @checks_arguments
    def update(
        self,
        preds: Predictions,
        time: ArrayLike,
        as_of: Any = None,
        ids: ArrayLike | None = None,
        *,
        allow_fewer: bool = False,
    ) -> Monitor:
        """Take the rows of some cohorts, each of which replaces what was known of an open cohort.

        Give the whole table again and again, or files of new days. Each cohort must be complete in its call; parts from
        several files or machines are given to a monitor each, which are added. Judged cohorts are skipped; if their
        rows or labels changed, a note says so.

        Parameters
        ----------
        preds : Predictions
            The predictions, of which recent ones may have no label.
        time : array (n,)
            Prediction time of each row: dates, datetimes, texts in the ISO format, or integers. Times with a zone are
            converted to UTC; those without a zone are taken to be in UTC, also if `as_of` has one.
        as_of : date, datetime, str or int, optional
            The moment when the labels were extracted, which must not run backwards from call to call. A date is the
            beginning of its day: a cohort counts if its horizon has passed by then, but rows may be from all of the
            day. The default is the newest prediction time.
        ids : array (n,), optional
            Identifier of each row, to refuse rows that are given twice, also to monitors that are added. The default is
            `preds.row_id`.
        allow_fewer : bool, default=False
            Whether an open cohort may have fewer rows, or fewer labels, than before.

        Returns
        -------
        Monitor
            This monitor.

        Raises
        ------
        InputError
            TO901 for invalid times, TO902 for rows after `as_of`, TO903 if `as_of` runs backwards, TO904 for
            another model, TO906 for fewer rows or labels than before, TO909 for repeated ids, TO910 for weights above
            1, repeated clusters, and outcomes that are not labels. The monitor is then unchanged.
        """
        if not isinstance(preds, Predictions):
            raise InputError(
                "TO302", "⟨update⟩ takes predictions.", describe(preds), "Pass ⟨Predictions(y_true, y_prob)⟩."
            )
        row_ids = preds.row_id if ids is None else np.asarray(ids)
        if row_ids is not None:
            check_one_value_per_row(row_ids, preds.n, "ids")
        batch = RowBatch(preds, time, row_ids, preds.cluster)
        self._take([batch], as_of, allow_fewer=check("allow_fewer", allow_fewer, bool))
        return self

    def _take(self, batches: Iterable[RowBatch], as_of: Any, *, allow_fewer: bool, judges: bool = False) -> None:
        """Take the rows of a call, in one batch or more, which are read again for the centers of a new monitor.

        With `judges` the cohorts that are due are judged, as `report` does, while the rows are read, so that few
        cohorts are in memory if the rows are in the order of time.
        """
        settings = self.settings
        given = None if as_of is None else read_moment(as_of, settings.unit)
        if given is not None:
            self._refuse_earlier(given, "⟨as_of⟩ runs backwards: an earlier call had newer labels.")
        model = self._state.model or MonitoredModel.from_batches((batch.preds for batch in batches), settings)
        if judges and given is not None:
            with suppress(NotInOrder):
                self._read(batches, given, model, allow_fewer=allow_fewer, in_order=True)
                return
        self._read(batches, given, model, allow_fewer=allow_fewer, in_order=False)

    def _read(
        self,
        batches: Iterable[RowBatch],
        given: Moment | None,
        model: MonitoredModel,
        *,
        allow_fewer: bool,
        in_order: bool,
    ) -> None:
        """Take the rows of a call; with `in_order`, judge cohorts as soon as all their rows were read."""
        state, settings = replace(self._state, model=model), self.settings
        judged, last = {cohort.number: cohort for cohort in state.judgment.cohorts}, state.judgment.last
        changed, late, partial = [], [], []
        for tallies, newest, first in tally_batches(batches, given, settings, model, in_order=in_order):
            if given is None:
                self._refuse_earlier(newest, "The newest prediction time, which stands for ⟨as_of⟩, runs backwards.")
            moment = newest if given is None else given
            opened = dict(state.open)
            for number, tally in tallies.items():
                if (cohort := judged.get(number)) is not None:
                    if (cohort.fingerprint, cohort.rows) != (tally.fingerprint, tally.rows):
                        changed.append((cohort, tally.rows, tally.labels.tolist()))
                elif last is not None and number < last:
                    late.append((number, tally.rows))
                else:
                    if (before := opened.get(number)) is not None and not allow_fewer:
                        _refuse_fewer(settings.period.label(number), before, tally)
                    opened[number] = replace(tally, as_of=moment)
            state = replace(state, as_of=moment, open=dict(sorted(opened.items())))
            if in_order:
                state, partial_now, _ = judge_due_cohorts(state, before=first)
                partial += partial_now
        notes = (*self._changed_notes(changed, model), *self._late_notes(late), *self._partial_notes(partial))
        self._set(state, notes, self._saved)

    def _refuse_earlier(self, moment: Moment, problem: str) -> None:
        """Raise TO903 with this problem if a moment is earlier than the latest one at which labels were extracted."""
        before: Any = self._state.as_of
        if before is not None and moment < before:
            raise InputError(
                "TO903",
                problem,
                f"{format_moment(moment)} after {format_moment(before)}",
                "Give the newest table with ⟨as_of=⟩, the moment when its labels were extracted, or add a monitor of"
                " the older one.",
            )

    def _changed_notes(self, changed: list[tuple[JudgedCohort, int, list[int]]], model: MonitoredModel) -> list[Note]:
        """Return the note on judged cohorts whose rows changed; nothing is judged again."""
        if not changed:
            return []
        texts = []
        for cohort, rows, labels in changed[:MAX_NAMED_COHORTS]:
            differences = [f"{rows - cohort.rows:+,} rows"] * (rows != cohort.rows)
            for name, before, now in zip(model.classes, cohort.labels, labels, strict=True):
                differences += [f"{now - before:+,} labels {name}"] * (now != before)
            what = ", ".join(differences) or "other probabilities or labels in as many rows"
            texts.append(f"{self.settings.period.label(cohort.number)}: {what}")
        more = f"; and {len(changed) - MAX_NAMED_COHORTS:,} more" if len(changed) > MAX_NAMED_COHORTS else ""
        text = f"Judged cohorts were given again with differences, and were not judged again. {'; '.join(texts)}{more}."
        return [Note("TN901", text)]

    def _late_notes(self, late: list[tuple[int, int]]) -> list[Note]:
        """Return the note on cohorts that came after later ones had been judged."""
        if not late:
            return []
        labels, rows = self._list_cohorts([number for number, _ in late]), sum(rows for _, rows in late)
        text = (
            f"{len(late):,} cohorts ({labels}) with {rows:,} rows came after later cohorts had been judged, and do not"
            " count."
        )
        return [Note("TN903", text)]

    def __add__(self, other: Any) -> Monitor:
        """Return the monitor of the rows of both, neither of which may have been judged over the same cohorts.

        Rows that both have would count twice, and are refused (TO908). With ids, any common row among 64 rows of a
        cohort, chosen at random, is found: an overlap of 5 % of the rows of a cohort with a probability of .96, and any
        overlap of cohorts of up to 64 rows. Without ids, rows are compared by their times and predictions, and only
        parts that are the same for three quarters of the comparable rows are refused.
        """
        if not isinstance(other, Monitor):
            return NotImplemented
        merged = Monitor.__new__(Monitor)
        state = add_states(self._state, other._state)
        merged._set(state, (*self._notes, *other._notes), {**self._saved, **other._saved})
        return merged

    def __radd__(self, other: Any) -> Monitor:
        """Return this monitor for 0 + monitor, with which `sum` begins."""
        return self if type(other) is int and other == 0 else NotImplemented

    @checks_arguments
    def report(self, *, require_judged: bool = False) -> MonitorReport:
        """Judge the cohorts whose horizon has passed, and report.

        Parameters
        ----------
        require_judged : bool, default=False
            Whether it is an error if no cohort with a label has been judged in this epoch.

        Returns
        -------
        MonitorReport
            The report.

        Raises
        ------
        InputError
            TO907 if labels are missing in a cohort whose horizon has passed, and ``missing="refuse"``; earlier
            cohorts are judged. TO911 if no cohort has been judged, but one is required.
        """
        state, partial, problem = judge_due_cohorts(self._state)
        self._set(state, (*self._notes, *self._partial_notes(partial)), self._saved)
        if problem is not None:
            raise problem
        if check("require_judged", require_judged, bool) and not report_of_state.has_evidence(state):
            n_judged = state.judgment.epoch.n_cohorts
            raise InputError(
                "TO911",
                "No judged row has a label." if n_judged else "No cohort has been judged.",
                f"{n_judged:,} judged and {len(state.open):,} open cohorts",
                "Wait until the horizon of the first one has passed, or pass a later ⟨as_of⟩; add the labels.",
            )
        return report_of_state.report(state, self._notes)

    def draw(self) -> Any:
        """Draw the cohorts over time, as `MonitorReport.draw` does.

        Returns
        -------
        Diagram
            The diagram of `report()`.
        """
        return self.report().draw()

    def _partial_notes(self, partial: list[int]) -> list[Note]:
        """Return the note on cohorts that were judged by rows that were extracted before they were over."""
        if not partial:
            return []
        text = (
            f"{format_count(len(partial), 'cohort')} ({self._list_cohorts(partial)}) were judged by rows that had been"
            " extracted before the cohort was over. Later rows of them do not count."
        )
        return [Note("TN909", text)]

    def _list_cohorts(self, numbers: list[int]) -> str:
        return format_first([self.settings.period.label(number) for number in numbers], MAX_NAMED_COHORTS)

    @checks_arguments
    def reset(self, reason: str, since: Any = None) -> Monitor:
        """Begin the next epoch, after an alarm that was acted upon.

        The evidence begins again at 1. Cohorts that began before the reset do not count in the new epoch, even if they
        are still open: they were predicted by the old model.

        Parameters
        ----------
        reason : str
            What was done, such as "recalibrated on 2026-11-28".
        since : date, datetime, str or int, optional
            From when on the new model predicts. The default is after `as_of`, and after all cohorts that were given.

        Returns
        -------
        Monitor
            This monitor.
        """
        reason = check("reason", reason, str)
        if not reason.strip():
            raise InputError(
                "TO203", "⟨reason⟩ must say what was done.", describe(reason), "For instance 'recalibrated'."
            )
        state, period = self._state, self.settings.period
        if since is not None:
            first: int | None = period.first_from(read_moment(since, self.settings.unit, "since"))
        elif state.as_of is None:
            first = None
        else:
            first = max([period.first_from(state.as_of), *(number + 1 for number in state.open)])
        self._set(replace(state, judgment=state.judgment.reset(reason, first)), self._notes, self._saved)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON, which `save` writes.

        Returns
        -------
        dict
            The state, of the schema ``trueodds.monitor_state/1``.
        """
        return state_to_json(self._state)

    @checks_arguments
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the state in a file, which `trueodds.load` reads.

        The file is written beside the old one and renamed, so that it is never half written.

        Parameters
        ----------
        path : str or path
            The file.

        Raises
        ------
        InputError
            TO913 if the file holds the state of a monitor that this one was not loaded from: another process saved it.
            TO905 if it cannot be written.
        """
        name = os.path.realpath(check("path", path, str | os.PathLike))
        self._saved[name] = write_state(name, self.to_dict, self._saved.get(name))

    def __repr__(self) -> str:
        return f"Monitor({self.n_judged:,} judged and {self.n_open:,} open cohorts, as of {self.as_of})"


def load(path: str | os.PathLike[str]) -> Monitor:
    """Load a monitor that was saved; raise TO905 if the file was changed or truncated."""
    source = os.fspath(path)
    content = json_files.parse_json(json_files.read_text(path, "TO905"), "TO905", source)
    monitor = Monitor.__new__(Monitor)
    if not isinstance(content, dict):
        raise invalid_state(source, describe(content))
    monitor._set(state_from_json(content, source), (), {os.path.realpath(source): content["sha256"]})
    return monitor


def read_columns(monitor: Monitor) -> Mapping[str, Any]:
    """Return the columns that the first call of the command fixed; empty if a monitor was made in Python."""
    return monitor._state.columns


def fix_columns(monitor: Monitor, columns: Mapping[str, Any]) -> None:
    """Remember the columns that the command reads, for later calls."""
    monitor._set(replace(monitor._state, columns=columns), monitor._notes, monitor._saved)


def _refuse_fewer(label: str, before: CohortTally, now: CohortTally) -> None:
    """Raise TO906 if a cohort has fewer rows than before, or fewer labels."""
    for what, old, new, cause in (
        (
            "rows",
            before.rows,
            now.rows,
            "Give all rows of a cohort in one call, or add monitors of its parts. If rows were removed,",
        ),
        ("labels", before.labeled, now.labeled, "Give the newest table. If labels were withdrawn,"),
    ):
        if new < old:
            raise InputError(
                "TO906",
                f"The open cohort {label} has fewer {what} than before.",
                f"{new:,} instead of {old:,}",
                f"{cause} pass ⟨allow_fewer=True⟩.",
            )


def update_from_batches(
    monitor: Monitor, batches: Iterable[RowBatch], as_of: Any, *, allow_fewer: bool, judges: bool
) -> None:
    """Give the rows of batches to a monitor, as one call of `update`, without all of them in memory.

    With `judges`, cohorts are judged while the rows are read, as the next report would.
    """
    monitor._take(batches, as_of, allow_fewer=allow_fewer, judges=judges)


def judge_due_cohorts(
    state: MonitorState, before: int | None = None
) -> tuple[MonitorState, list[int], InputError | None]:
    """Judge the cohorts whose horizon has passed, in their order, and stop at missing labels or at cohort `before`.

    Returns the state without them, those that were judged by rows extracted before the cohort was over, and TO907 for
    the cohort that lacks labels, or None.
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
