"""The report of a monitor: whether there is an alarm, what is wrong since when and by how much, and what to do."""

from __future__ import annotations

import importlib
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.formatting import format_count, format_number, format_percent_in_text, format_rate, format_share
from trueodds.core.json_files import JsonObject
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, Result
from trueodds.core.table import to_data_frame
from trueodds.monitoring.judgment import Contribution
from trueodds.monitoring.onset import MonitoredError, Onset

_LARGEST_LOG = 709.0  # whose exponential is a float
MAIN_VIEWS = ("positive", "confidence")  # which texts need not name


@dataclass(frozen=True, slots=True)
class CohortRow(JsonObject):
    """A line of the table of cohorts: an open cohort, a judged one, or several old ones.

    Attributes
    ----------
    cohort, last : str
        The cohort, and the last one of several.
    status : {"judged", "open"}
        Whether it was judged.
    epoch : int or None
        Number of the epoch in which it was judged.
    cohorts : int
        Number of cohorts.
    rows, unlabeled : int
        Number of rows, and of those without a label.
    observed, expected, variance : float
        Observed and expected number of events in rows with a known outcome, and the variance of the former under
        calibration.
    log_evidence : float or None
        Log e-value after this cohort; None if it is open.
    """

    cohort: str
    last: str
    status: str
    epoch: int | None
    cohorts: int
    rows: int
    unlabeled: int
    observed: float
    expected: float
    variance: float
    log_evidence: float | None


@dataclass(frozen=True, slots=True)
class PredictionDrift(JsonObject):
    """How the predictions changed, which says nothing about their calibration.

    Attributes
    ----------
    mean_before, mean_now : float
        Mean prediction in the first cohorts, and in the latest ones.
    distance : float
        Total variation distance between the shares of rows by score cell.
    rows_before, rows_now : float
        Number of rows of either.
    """

    mean_before: float
    mean_now: float
    distance: float
    rows_before: float
    rows_now: float


@dataclass(frozen=True, slots=True)
class MonitorStatus(JsonObject):
    """Where a monitor stands.

    Attributes
    ----------
    as_of : str or None
        The latest moment at which labels were extracted.
    epoch : int
        Number of the epoch, from 0.
    reset_reason : str
        Reason of the reset with which it began.
    judged, open : int
        Number of cohorts that were judged in this epoch, and of open ones.
    open_rows, open_unlabeled : int
        Number of rows in open cohorts, and of those without a label.
    last_judged : str or None
        The last judged cohort.
    next_due : str or None
        The moment at which the first open cohort counts; None if no open cohort counts in this epoch.
    alarm_cohort : str or None
        The cohort that raised the alarm.
    max_log_evidence : float
        Largest log e-value of the epoch.
    impossible : float
        Number of events with probability 0, and of nonevents with probability 1.
    """

    as_of: str | None
    epoch: int
    reset_reason: str
    judged: int
    open: int
    open_rows: int
    open_unlabeled: int
    last_judged: str | None
    next_due: str | None
    alarm_cohort: str | None
    max_log_evidence: float
    impossible: float


@dataclass(frozen=True, slots=True, repr=False)
class MonitorReport(Result):
    """The report of a `Monitor`.

    Attributes
    ----------
    alarm : bool
        Whether the evidence reached 1/alpha in the current epoch, or an event with probability 0 occurred.
    log_evidence : float
        The logarithm of the current e-value.
    status : MonitorStatus
        Numbers of judged and open cohorts, and the cohort of the alarm.
    onset : Onset or None
        Since when the probabilities are wrong; None without an alarm, or if the evidence does not date the error.
    error : MonitoredError or None
        Mean error since the onset; without an alarm, of all judged cohorts of the epoch.
    contributions : tuple of Contribution
        The largest parts of the evidence.
    cohorts : tuple of CohortRow
        The cohorts.
    drift : PredictionDrift or None
        The change of the predictions.
    advice : Advice
        What to do.
    settings : mapping
        The settings.
    assumptions : tuple of str
        What the guarantee assumes.
    notes : tuple of Note
        Facts to report.
    """

    json_schema: ClassVar[str] = "trueodds.monitor/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "alarm", "evidence", "log_evidence", "since", "status", "onset", "error", "contributions", "cohorts", "drift",
        "advice", "settings", "assumptions", "notes",
    )  # fmt: skip

    alarm: bool
    log_evidence: float
    status: MonitorStatus
    onset: Onset | None
    error: MonitoredError | None
    contributions: tuple[Contribution, ...]
    cohorts: tuple[CohortRow, ...]
    drift: PredictionDrift | None
    advice: Advice
    settings: dict[str, Any]
    assumptions: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def evidence(self) -> float:
        """The current e-value: an alarm is raised when it reaches 1/alpha."""
        return math.exp(self.log_evidence) if self.log_evidence <= _LARGEST_LOG else math.inf

    @property
    def since(self) -> str | None:
        """The cohort since which the probabilities are wrong; None without an alarm, or if it is not known."""
        return None if self.onset is None else self.onset.since

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean error since the onset."""
        return None if self.error is None else self.error.interval

    @property
    def open_cohorts(self) -> tuple[CohortRow, ...]:
        """The cohorts whose horizon has not passed."""
        return tuple(row for row in self.cohorts if row.status == "open")

    @property
    def judged_cohorts(self) -> tuple[CohortRow, ...]:
        """The judged cohorts, of which old ones are added."""
        return tuple(row for row in self.cohorts if row.status == "judged")

    def frame(self) -> Any:
        """Return the cohorts as a data frame.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed.
        """
        rows = [row.to_dict() for row in self.cohorts]
        columns = {name: [math.nan if row[name] is None else row[name] for row in rows] for name in CohortRow.__slots__}
        return to_data_frame(columns)

    def draw(self) -> Any:
        """Draw the cohorts: observed against expected events, the evidence, and the rows, over time.

        Returns
        -------
        Diagram
            The diagram, with `frame()`, `draw(ax)` and `save(path)`. Its `table` has a row for each cohort and the
            columns ``view part cohort last cohorts start end epoch rows unlabeled observed expected ratio low high
            log10_evidence``, with `start` and `end` in days since 1970.

        Raises
        ------
        InputError
            TO108 without cohorts.
        """
        # Imported by name when it is called, because diagrams import the results.
        return importlib.import_module("trueodds.diagrams.monitor").draw_report(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one self-contained HTML page, which loads nothing.

        Parameters
        ----------
        path : str or path, optional
            File to which the page is written.

        Returns
        -------
        str
            The HTML text.

        Raises
        ------
        InputError
            TO701 and TO702 if matplotlib or jinja2 is not installed, TO703 if the file cannot be written.
        """
        page: str = importlib.import_module("trueodds.reports.monitor_page").monitor_page(self, path)
        return page

    def describe(self) -> str:
        """Describe the alarm, its cause, the onset, the error, and the advice.

        Returns
        -------
        str
            A line for each.
        """
        lines = []
        if self.alarm:
            lines.append(f"Advice: {self.advice.text}")
            if self.advice.fit:
                lines += [f"  {self.advice.fit}", f"  {self.advice.confirm}"]
        lines += [f"Guarantee: {self.assumptions[0]}", *(f"  {text}" for text in self.assumptions[1:])]
        return "\n".join([*self.sentences(), *map(to_printable, lines)])

    def sentences(self) -> list[str]:
        """Describe the alarm, its cause, the onset, the error, the open cohorts, and the drift of the predictions.

        Returns
        -------
        list of str
            The lines of `describe` before the advice.
        """
        texts = [self._alarm_text()]
        if self.alarm:
            texts += [text for text in (self._cause_text(), self._onset_text()) if text]
        if self.error is not None:
            texts.append(self._error_text(self.error))
        if self.status.open:
            texts.append(self._open_text())
        if self.drift is not None:
            texts.append(_drift_text(self.drift))
        return [to_printable(text) for text in texts]

    def _alarm_text(self) -> str:
        status = self.status
        needed = format_number(1 / self.settings["alpha"])
        if not status.judged:
            due = "" if not status.epoch else "; those that began before the reset do not count"
            due += "" if status.next_due is None else f"; the first counts from {status.next_due} on"
            return f"Nothing judged yet: {format_count(status.open, 'open cohort')}{due}."
        if any(note.code == "TN905" for note in self.notes):
            return f"No evidence yet: no row of {format_count(status.judged, 'judged cohort')} has a label."
        now = format_e_value(self.log_evidence)
        value = f"e-value {now}, an alarm needs {needed}"
        judged = f"{format_count(status.judged, 'cohort')} to {status.last_judged}"
        if not self.alarm:
            return f"No alarm: {value}, after {judged}."
        if self.log_evidence < -math.log(self.settings["alpha"]) <= status.max_log_evidence:
            value = f"e-value up to {format_e_value(status.max_log_evidence)}, now {now}; an alarm needs {needed}"
        margin = format_percent_in_text(self.settings["odds_margin"] - 1)
        off = "not exact" if self.settings["odds_margin"] == 1 else f"more than {margin} off"
        if status.impossible:
            events = format_count(round(status.impossible), "outcome")
            cause = f"{events} had predicted probability 0"
        else:
            cause = f"the predicted odds are {off}"
        return f"Alarm at cohort {status.alarm_cohort}: {cause} ({value}, after {judged})."

    def _cause_text(self) -> str:
        if not self.contributions or self.status.max_log_evidence < -math.log(self.settings["alpha"]):
            return ""  # the alarm was raised by an impossible outcome
        largest = self.contributions[0]
        in_group = "" if largest.group is None else f" in {largest.group}"
        of_view = "" if largest.view in MAIN_VIEWS else f" of {largest.view}"
        what = "are wrong at" if largest.claim == "cells" else "are"
        return (
            f"Largest part of the evidence ({100 * largest.share:.0f} %): the probabilities{of_view} {what}"
            f" {largest.direction}{in_group}."
        )

    def _onset_text(self) -> str:
        if self.onset is None:
            return "Onset: not known, because from no cohort on the evidence is clear."
        return (
            f"Onset: {self.onset.since} ({self.onset.earliest} to {self.onset.latest}); for a slow drift, the cohort in"
            " which the error left the margin."
        )

    def _error_text(self, error: MonitoredError) -> str:
        period = "Since the onset" if self.onset is not None else "In this epoch"
        of_view = "" if error.view in MAIN_VIEWS else f" of {error.view}"
        period += of_view if error.group is None else f"{of_view} in {error.group}"
        rate, mean = error.observed / error.rows, error.expected / error.rows
        value, low, high = (
            format_rate(bound, signed=True) for bound in (error.value, error.interval.low, error.interval.high)
        )
        text = (
            f"{period}: observed {format_rate(rate)}, predicted {format_rate(mean)}, error {value} [{low}, {high}]"
            f" {format_percent_in_text(error.interval.level)}"
        )
        if math.isnan(error.o_e):
            return f"{text}."
        ratio, ratio_low, ratio_high = (
            f"{value:.2f}" if value < 1000 else format_number(value)
            for value in (error.o_e, error.o_e_interval.low, error.o_e_interval.high)
        )
        return f"{text}, O:E {ratio} [{ratio_low}, {ratio_high}]."

    def _open_text(self) -> str:
        status = self.status
        return (
            f"Open: {format_count(status.open, 'cohort')} with {format_count(status.open_rows, 'row')}, of which"
            f" {status.open_unlabeled:,} have no label yet."
        )


def format_e_value(log_evidence: float) -> str:
    """Return an e-value as text; those beyond the range of a float as a power of ten.

    >>> format_e_value(0.0), format_e_value(1000.0), format_e_value(math.inf)
    ('1', '10^434', 'infinite')
    """
    if math.isinf(log_evidence):
        return "infinite"
    if log_evidence > _LARGEST_LOG:
        return f"10^{int(log_evidence / math.log(10))}"
    return format_number(math.exp(log_evidence))


def _drift_text(drift: PredictionDrift) -> str:
    return (
        f"Predictions: mean {format_rate(drift.mean_now)}, in the first cohorts {format_rate(drift.mean_before)};"
        f" {format_share(drift.distance)} of the rows moved to other scores. This is no error by itself."
    )


def total_variation(before: np.ndarray, now: np.ndarray) -> float:
    """Return the total variation distance of two distributions, given by counts."""
    return float(np.abs(before / before.sum() - now / now.sum()).sum() / 2)


_METHODS = {"level": "shift", "slope": "temperature", "cells": "auto", "scores": "auto"}


@dataclass(frozen=True, slots=True)
class Advice(JsonObject):
    """What to do.

    Attributes
    ----------
    action : {"nothing", "shift", "temperature", "recalibrate"}
        The advice.
    text : str
        The advice as a sentence.
    fit, confirm : str
        Python code that fits a calibrator to rows after the onset, and confirms it on later ones.
    fit_command, confirm_command : str
        The same as commands.
    """

    action: str
    text: str
    fit: str = ""
    confirm: str = ""
    fit_command: str = ""
    confirm_command: str = ""


def advise(contribution: Contribution, onset: Onset | None, columns: Mapping[str, Any]) -> Advice:
    """Return the advice for the largest part of the evidence; its commands read the `columns` of the monitor."""
    method = _METHODS[contribution.claim]
    action = "recalibrate" if method == "auto" else method
    of_group = "" if contribution.group is None else f" of the group {contribution.group}"
    since = "the change" if onset is None else onset.since
    what = {
        "shift": "shift the log odds",
        "temperature": "change the slope of the log odds by a temperature",
        "recalibrate": "fit the map that predicts best",
    }[action]
    labels, scores = _options(columns, ("label", "correct")), _options(columns, ("probs", "logits", "confidence"))
    return Advice(
        action=action,
        text=f"Check first whether labels or inputs changed. Then {what}, on rows{of_group} since {since}, and"
        " confirm the gain on rows that came later still.",
        fit=f"calibrator = to.fit(since_onset, {method!r})",
        confirm='to.compare(calibrator.recalibrate(later), later, "log_loss")',
        fit_command=f"trueodds fit since_onset.parquet{labels}{scores} --method {method} --out calibrator.json",
        confirm_command=f"trueodds apply calibrator.json later.parquet{scores} --out recalibrated.parquet && trueodds"
        f" compare recalibrated.parquet later.parquet{labels}{scores} --estimator log_loss"
        " --fail-on 'difference.high>0'",
    )


def _options(columns: Mapping[str, Any], names: Sequence[str]) -> str:
    """Spell the columns of these names as options, each after a space."""
    return "".join(
        f" --{name.replace('_', '-')} {shlex.quote(columns[name])}"
        for name in names
        if isinstance(columns.get(name), str)
    )
