"""Judge cohorts in their order: update the capital of all bets, and remember when the evidence raised an alarm.

Of a judged cohort a line is kept, and sums that are folded with age, so that the state stays small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from trueodds.core.json_files import JsonObject
from trueodds.core.typing import Array
from trueodds.monitoring.capital import Alternatives, Capital, log_sum
from trueodds.monitoring.cohort_tally import ALL_ROWS, CohortTally
from trueodds.monitoring.evidence import N_TOTALS, EvidenceSums
from trueodds.monitoring.monitor_settings import MonitorSettings

# Shares of the capital: all groups together, and the part of it for groups that appear later.
GROUPS, RESERVE = 0.30, 0.05
MAX_CONTRIBUTIONS = 10  # number of parts of the evidence that are kept
MAX_NEW_GROUPS = 40  # number of groups after which the reserve, halved for each, is used up


@dataclass(frozen=True, slots=True)
class Contribution(JsonObject):
    """A part of the evidence.

    Attributes
    ----------
    claim : {"level", "slope", "cells", "scores"}
        What is bet on: the level of all probabilities, their slope, several score cells at once, or one of them.
    view : str
        The view of the lens, such as a class.
    group : str or None
        The group, such as ``region=north``; None for all rows.
    share : float
        Share of the evidence.
    direction : str
        The error that the largest bet of this part asserts.
    """

    claim: str
    view: str
    group: str | None
    share: float
    direction: str


@dataclass(frozen=True, slots=True)
class MonitorEpoch:
    """A period between two resets.

    Attributes
    ----------
    number : int
        Number of the epoch, from 0.
    reason : str
        Reason of the reset with which it began; empty for the first epoch.
    first_cohort : int or None
        Number of the first cohort that counts: earlier ones, which were open at the reset, are those of the old model.
    n_cohorts : int
        Number of judged cohorts.
    alarm_cohort : int or None
        Number of the cohort that raised the alarm.
    max_log_evidence : float
        Largest log e-value.
    impossible : float
        Number of events with probability 0, and of nonevents with probability 1.
    groups : mapping of str to float
        The monitored groups in the order of their numbers, with their shares of the capital.
    unmonitored_groups : int
        Number of groups that came after the reserve had been used up.
    n_new_groups : int
        Number of groups that came after the first cohort.
    contributions : tuple of Contribution
        The largest parts of the evidence where it was largest, if it reached the alarm.
    """

    number: int = 0
    reason: str = ""
    n_cohorts: int = 0
    alarm_cohort: int | None = None
    max_log_evidence: float = 0.0
    impossible: float = 0.0
    groups: Mapping[str, float] = field(default_factory=dict)
    unmonitored_groups: int = 0
    n_new_groups: int = 0
    contributions: tuple[Contribution, ...] = ()
    first_cohort: int | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judged cohorts, the epochs, and the capital of the current epoch.

    Attributes
    ----------
    cohorts : tuple of JudgedCohort
        The judged cohorts.
    history : tuple of JudgedSums
        Their sums, of which old ones are folded.
    epochs : tuple of MonitorEpoch
        The epochs.
    capital : tuple of mapping
        For each thread of cohorts the capital of all rows and of each group.
    """

    cohorts: tuple[JudgedCohort, ...] = ()
    history: tuple[JudgedSums, ...] = ()
    epochs: tuple[MonitorEpoch, ...] = (MonitorEpoch(),)
    capital: tuple[Mapping[str, Capital], ...] = ()

    @property
    def epoch(self) -> MonitorEpoch:
        """The current epoch."""
        return self.epochs[-1]

    @property
    def last(self) -> int | None:
        """Number of the last judged cohort."""
        return self.cohorts[-1].number if self.cohorts else None

    def reset(self, reason: str, first_cohort: int | None) -> Judgment:
        """Begin the next epoch, in which the cohorts from `first_cohort` on count."""
        epoch = MonitorEpoch(len(self.epochs), reason, first_cohort=first_cohort)
        return replace(self, epochs=(*self.epochs, epoch), capital=())

    def counts(self, number: int) -> bool:
        """Return whether a cohort counts in the current epoch."""
        return self.epoch.first_cohort is None or number >= self.epoch.first_cohort

    def skip(self, number: int, tally: CohortTally) -> Judgment:
        """Return the judgment after a cohort of the model before the reset, which is no evidence."""
        evidence = self.cohorts[-1].log_evidence if self.cohorts else 0.0
        return self._remember(number, self.epoch.number - 1, tally, evidence, {})

    def _remember(
        self, number: int, epoch: int, tally: CohortTally, log_evidence: float, log_ratios: Mapping[str, np.ndarray]
    ) -> Judgment:
        """Add a line for a cohort, and its sums."""
        cohort = JudgedCohort(
            number, epoch, tally.rows, tally.unlabeled, tuple(tally.labels.tolist()), tally.fingerprint, log_evidence
        )
        names = {ALL_ROWS, *self.epochs[epoch].groups}
        totals = {name: totals_of(views) for name, views in tally.sums.items() if name in names}
        cell_rows = np.stack([view.cell_rows for view in tally.sums[ALL_ROWS]])
        sums = JudgedSums(number, number, epoch, 1, totals, log_ratios, cell_rows)
        return replace(self, cohorts=(*self.cohorts, cohort), history=fold((*self.history, sums)))

    def log_evidence_by_thread(self, settings: MonitorSettings, alternatives: list[Alternatives]) -> list[float]:
        """Return the log e-value of each thread, divided by their number."""
        values = [
            float(log_sum([share for share, _ in self._panel_evidence(thread, settings, alternatives)]))
            - math.log(settings.n_threads)
            for thread in self.capital
        ]
        return values or [-math.log(settings.n_threads)]

    def _panel_evidence(
        self, thread: Mapping[str, Capital], settings: MonitorSettings, alternatives: list[Alternatives]
    ) -> list[tuple[float, str]]:
        """Return the log of the weighted e-value of all rows and of each group; what is not invested is last."""
        if not thread:
            return [(0.0, ALL_ROWS)]
        shares, n_views = self.shares(settings), len(alternatives)
        by_view = Capital.join(list(thread.values())).log_evidence(alternatives[0], has_shock=bool(settings.shock_sd))
        evidence = log_sum(by_view.reshape(-1, n_views)) - math.log(n_views)
        result = [(math.log(shares[name]) + float(value), name) for name, value in zip(thread, evidence, strict=True)]
        left = 1 - sum(shares[name] for name in thread)
        return [*result, (math.log(left), ALL_ROWS)] if left > 1e-12 else result

    def shares(self, settings: MonitorSettings) -> dict[str, float]:
        """Return the shares of the capital of all rows and of each group."""
        return {ALL_ROWS: 1 - GROUPS if settings.group else 1.0, **self.epoch.groups}

    def judge(
        self,
        number: int,
        tally: CohortTally,
        settings: MonitorSettings,
        alternatives: list[Alternatives],
        view_names: tuple[str, ...],
    ) -> Judgment:
        """Return the judgment after another cohort, which must follow those that were judged."""
        epoch = _number_groups(self.epoch, tally, settings)
        names = [ALL_ROWS, *epoch.groups]
        threads = list(self.capital) or [{} for _ in range(settings.n_threads)]
        position = number % settings.n_threads
        thread = threads[position]
        t = next(iter(thread.values())).t if thread else 0
        n_views, first = len(alternatives), alternatives[0]
        sums_of_name = dict(tally.sums.items())
        # The views of all groups are judged together, because there can be many groups.
        ratios = np.zeros((len(names), n_views, first.size))
        for i, name in enumerate(names):
            for j, sums in enumerate(sums_of_name.get(name, ())):
                ratios[i, j] = sums.log_ratios(alternatives[j], settings.shock_sd)
        flat = ratios.reshape(-1, first.size)
        before = Capital.join([thread.get(name) or Capital.start(first, n_views, t) for name in names])
        products = before.products(flat, first)
        new_thread = dict(zip(names, before.judge(flat, first, products).split(n_views), strict=True))
        products_of_name = products.reshape(len(names), n_views, -1)
        log_ratios = {
            name: np.hstack((ratios[i, :, : first.n_tilts + first.n_slopes], products_of_name[i]))
            for i, name in enumerate(names)
            if name in sums_of_name
        }
        threads[position] = new_thread
        judged = replace(self, epochs=(*self.epochs[:-1], epoch), capital=tuple(threads))
        evidence = max(judged.log_evidence_by_thread(settings, alternatives))
        impossible = epoch.impossible + sum(view.impossible for view in sums_of_name[ALL_ROWS])
        is_evident = evidence >= -math.log(settings.alpha)
        is_alarm = is_evident or impossible > 0
        contributions = epoch.contributions
        if is_evident and evidence > epoch.max_log_evidence:
            contributions = judged.contributions(settings, alternatives, view_names)[:MAX_CONTRIBUTIONS]
        epoch = replace(
            epoch,
            n_cohorts=epoch.n_cohorts + 1,
            alarm_cohort=number if is_alarm and epoch.alarm_cohort is None else epoch.alarm_cohort,
            max_log_evidence=max(epoch.max_log_evidence, evidence),
            impossible=impossible,
            contributions=contributions,
        )
        judged = replace(judged, epochs=(*self.epochs[:-1], epoch))
        return judged._remember(number, epoch.number, tally, evidence, log_ratios)

    def contributions(
        self, settings: MonitorSettings, alternatives: list[Alternatives], views: tuple[str, ...]
    ) -> tuple[Contribution, ...]:
        """Return the parts of the evidence of the thread that has most, the largest first."""
        if not self.capital:
            return ()
        by_thread = self.log_evidence_by_thread(settings, alternatives)
        thread = self.capital[int(np.argmax(by_thread))]
        total = max(by_thread) + math.log(settings.n_threads)
        shares = self.shares(settings)
        found = []
        for name, capital in thread.items():
            panel = math.log(shares[name]) - math.log(len(alternatives)) - total
            for i, view in enumerate(views):
                logs = capital.log_shares(alternatives[i], has_shock=bool(settings.shock_sd))[i] + panel
                for claim, part, direction in _claims(alternatives[i], logs):
                    share = float(np.exp(log_sum(part)))
                    found.append(Contribution(claim, view, name or None, share, direction))
        return tuple(sorted(found, key=lambda part: -part.share))


def _number_groups(epoch: MonitorEpoch, tally: CohortTally, settings: MonitorSettings) -> MonitorEpoch:
    """Return the epoch with the groups of a cohort: the first cohort declares them, later ones take from the reserve.

    The k-th new group takes the share RESERVE · 2^−k. Groups are numbered by cohort and then by name, so that the
    numbers do not depend on when cohorts are judged.
    """
    if not settings.group:
        return epoch
    present = sorted(name for name in tally.sums if name != ALL_ROWS)
    groups, n_new, unmonitored = dict(epoch.groups), epoch.n_new_groups, epoch.unmonitored_groups
    if not groups:
        for column, declared in settings.group:
            values = (
                [f"{column}={value}" for value in declared]
                if declared is not None
                else [name for name in present if name.startswith(f"{column}=")]
            )
            for name in values:
                groups[name] = (GROUPS - RESERVE) / len(settings.group) / len(values)
    for name in present:
        if name in groups:
            continue
        if n_new == MAX_NEW_GROUPS:
            unmonitored += 1
        else:
            n_new += 1
            groups[name] = RESERVE * 2.0**-n_new
    return replace(epoch, groups=groups, n_new_groups=n_new, unmonitored_groups=unmonitored)


def _claims(alternatives: Alternatives, logs: np.ndarray) -> list[tuple[str, np.ndarray, str]]:
    """Divide the weighted log capital of a view into its claims, each with the direction of its largest bet."""
    n_tilts, n_slopes = alternatives.n_tilts, alternatives.n_slopes
    n_all = n_tilts + n_slopes
    level, slope, spots, cells = (
        logs[:n_tilts],
        logs[n_tilts:n_all],
        logs[n_all : alternatives.size],
        logs[alternatives.size :],
    )
    largest_slope = alternatives.slopes[int(slope.argmax()) // 2]
    cell, tilt = divmod(int(spots.argmax()), n_tilts)
    edges = (0.0, *alternatives.edges, 1.0)
    return [
        ("level", level, _level_text(alternatives.tilts[int(level.argmax())])),
        ("slope", slope, "too extreme" if largest_slope < 1 else "too moderate"),
        ("cells", cells, "several scores"),
        (
            "scores",
            spots,
            f"{_level_text(alternatives.tilts[tilt])} from {edges[cell]:g} to {edges[cell + 1]:g}",
        ),
    ]


def _level_text(tilt: float) -> str:
    """Say in which direction the probabilities are wrong if the log odds of the events are shifted by a tilt."""
    return "too low" if tilt > 0 else "too high"


KEPT_SINGLY = 128  # number of the latest cohorts whose sums are kept singly
FOLDED_TOGETHER = 16  # number of older cohorts whose sums are added


@dataclass(frozen=True, slots=True)
class JudgedCohort:
    """A judged cohort, whose rows do not count again.

    Attributes
    ----------
    number, epoch : int
        Number of the cohort, and of the epoch in which it was judged.
    rows, unlabeled : int
        Number of rows, and of those without a label.
    labels : tuple of int
        Number of rows with each label.
    fingerprint : int
        Sum of hashes of the rows.
    log_evidence : float
        Log e-value after this cohort.
    """

    number: int
    epoch: int
    rows: int
    unlabeled: int
    labels: tuple[int, ...]
    fingerprint: int
    log_evidence: float


@dataclass(frozen=True, slots=True)
class JudgedSums:
    """Sums of one judged cohort, or of several consecutive ones of an epoch.

    Attributes
    ----------
    first, last, epoch : int
        Numbers of the first and the last cohort, and of the epoch.
    n_cohorts : int
        Number of cohorts.
    totals : mapping of str to array (views, 7)
        For all rows and each group: the first columns of `EvidenceSums.cells`, `N_TOTALS` in number.
    log_ratios : mapping of str to array (views, tilts + slopes + discounts)
        Log-likelihood ratios of the alternatives that concern all scores, and factors of the products of cells.
    cell_rows : array (views, cells)
        Number of rows of each score cell.
    """

    first: int
    last: int
    epoch: int
    n_cohorts: int
    totals: Mapping[str, Array]
    log_ratios: Mapping[str, Array]
    cell_rows: Array

    def __add__(self, later: JudgedSums) -> JudgedSums:
        return JudgedSums(
            self.first,
            later.last,
            self.epoch,
            self.n_cohorts + later.n_cohorts,
            _add(self.totals, later.totals),
            _add(self.log_ratios, later.log_ratios),
            self.cell_rows + later.cell_rows,
        )


def fold(history: tuple[JudgedSums, ...]) -> tuple[JudgedSums, ...]:
    """Add the sums of old cohorts, once enough of an epoch are kept singly.

    Which ones are added depends only on the judged cohorts, not on when they were judged.
    """
    singles = [i for i, sums in enumerate(history) if sums.n_cohorts == 1]
    if len(singles) < KEPT_SINGLY + FOLDED_TOGETHER:
        return history
    start = singles[0]
    stop = start + 1
    while stop < start + FOLDED_TOGETHER and history[stop].epoch == history[start].epoch:
        stop += 1
    folded = history[start]
    for sums in history[start + 1 : stop]:
        folded = folded + sums
    if folded.n_cohorts == 1:  # the only cohort of its epoch, which counts as folded
        return (*history[:stop], *fold(history[stop:]))
    return (*history[:start], folded, *history[stop:])


def totals_of(views: tuple[EvidenceSums, ...]) -> Array:
    """Return the totals of each view, (views, 7)."""
    return np.stack([view.totals for view in views]).reshape(-1, N_TOTALS)


def _add(a: Mapping[str, Array], b: Mapping[str, Array]) -> dict[str, Array]:
    return {name: a[name] + b[name] if name in a and name in b else {**a, **b}[name] for name in {**a, **b}}
