"""Decide which of many monitored models need attention, with a bounded rate of false discoveries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_count, format_percent_in_text
from trueodds.core.json_files import JsonObject
from trueodds.core.printable import to_printable
from trueodds.core.results import Result
from trueodds.core.settings import Probability, check
from trueodds.monitoring.monitor_report import MonitorReport, format_e_value


@dataclass(frozen=True, slots=True)
class FleetMember(JsonObject):
    """A model of a fleet.

    Attributes
    ----------
    name : str
        The name of the model.
    needs_attention : bool
        Whether it is among the discoveries.
    log_evidence : float
        The logarithm of its current e-value; infinite after an event with probability 0.
    alarm : bool
        Whether its own monitor has raised an alarm.
    since : str or None
        The cohort since which its probabilities are wrong, if there is an alarm.
    judged : int
        Number of judged cohorts.
    as_of : str or None
        The latest moment at which its labels were extracted.
    """

    name: str
    needs_attention: bool
    log_evidence: float
    alarm: bool
    since: str | None
    judged: int
    as_of: str | None


@dataclass(frozen=True, slots=True, repr=False)
class FleetReport(Result):
    """Which models of a fleet need attention.

    Attributes
    ----------
    fdr : float
        Bound on the expected share of false discoveries.
    n : int
        Number of models.
    members : tuple of FleetMember
        The models, those with the largest evidence first.
    notes : tuple of Note
        Facts to report.
    """

    json_schema: ClassVar[str] = "trueodds.fleet/1"

    fdr: float
    n: int
    members: tuple[FleetMember, ...]
    notes: tuple[Note, ...] = ()

    @property
    def discoveries(self) -> tuple[str, ...]:
        """Names of the models that need attention."""
        return tuple(member.name for member in self.members if member.needs_attention)

    def describe(self) -> str:
        """Describe which models need attention, and the evidence of each.

        Returns
        -------
        str
            A line for each.
        """
        n_found = len(self.discoveries)
        verb = "needs" if n_found == 1 else "need"
        found = (
            f"{n_found} of {format_count(self.n, 'model')} {verb} attention" if n_found else "No model needs attention"
        )
        lines = [f"{found} (at most {format_percent_in_text(self.fdr)} false discoveries on average)."]
        for member in self.members:
            word = "needs attention" if member.needs_attention else "no attention needed"
            evidence = format_e_value(member.log_evidence)
            alarm = f", wrong since {member.since}" if member.since else ", alarm" if member.alarm else ""
            judged = format_count(member.judged, "judged cohort")
            lines.append(
                to_printable(f"  {member.name}: {word}, e-value {evidence}{alarm}, {judged}, as of {member.as_of}")
            )
        return "\n".join(lines)


def examine_fleet(reports: Mapping[str, MonitorReport], fdr: float = 0.05) -> FleetReport:
    r"""Return the models that need attention: those with the k largest e-values, for the largest k with

    .. math:: E_{(k)} \ge \frac{K}{k\,q},

    where K is the number of models and q the bound `fdr` on the expected share of false discoveries. The e-values are
    the current ones, at one date; their largest values in the past would not be valid. Models may be dependent.

    Raises
    ------
    InputError
        TO108 without models, TO203 for an invalid `fdr`.

    References
    ----------
    .. [1] Wang and Ramdas (2022), "False discovery rate control with e-values".
    """
    fdr = check("fdr", fdr, Probability)
    if not reports:
        raise InputError("TO108", "A fleet needs at least one model.", "none", "Name the states of the monitors.")
    evidence = {name: math.inf if report.status.impossible else report.log_evidence for name, report in reports.items()}
    names = sorted(reports, key=lambda name: -evidence[name])
    n = len(names)
    n_found = max((k for k, name in enumerate(names, 1) if evidence[name] >= math.log(n / (k * fdr))), default=0)
    members = tuple(
        FleetMember(
            name=name,
            needs_attention=rank <= n_found,
            log_evidence=evidence[name],
            alarm=reports[name].alarm,
            since=reports[name].since,
            judged=reports[name].status.judged,
            as_of=reports[name].status.as_of,
        )
        for rank, name in enumerate(names, 1)
    )
    return FleetReport(fdr, n, members, _notes(members))


def _notes(members: tuple[FleetMember, ...]) -> tuple[Note, ...]:
    moments = sorted({member.as_of for member in members if member.as_of is not None})
    if len(moments) < 2:
        return ()
    text = f"The monitors have labels of different moments, {moments[0]} to {moments[-1]}; compare them at one date."
    return (Note("TN908", text),)
