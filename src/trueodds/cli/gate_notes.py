"""Note TN240 on a gate of --fail-on whose bound is so large, compared with the event rate, that gross errors pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueodds.cli.gate import WORST_GROUP, Gate, make_default_estimator

if TYPE_CHECKING:
    from trueodds.core.errors import Note
    from trueodds.hypotests.group_results import ByGroup


def note_in_audit(gate: Gate, report: Mapping[str, Any]) -> Note | None:
    """Return the note TN240, if it applies, for a gate that an audit of two classes passed.

    `report` is the JSON object of the audit.
    """
    if gate.lens not in (None, "positive") or report["data"]["event_rate"] is None:
        return None
    rates = {group["label"]: group["event_rate"] for group in report["groups"]}
    return _note_on_rate(gate, report["data"]["event_rate"], rates)


def note_in_groups(gate: Gate, by_group: ByGroup) -> Note | None:
    """Return the note TN240, if it applies, for a gate on the error of a group that passed."""
    from trueodds.hypotests.equivalence import is_lens_on_classes

    if not is_lens_on_classes(by_group.lens):
        return None
    return _note_on_rate(gate, None, {group.label: group.event_rate for group in by_group.groups})


def note_in_rows(gate: Gate, rows: Any, lens_name: str, region: Any) -> Note | None:
    """Return the note TN240, if it applies, for a gate on the error of all rows that passed.

    `rows` are Predictions or a Tally, `lens_name` is the lens of the estimate, and `region` restricts the rows.
    """
    from trueodds.api.arguments import restrict_to_region
    from trueodds.hypotests.equivalence import EventRate, is_lens_on_classes
    from trueodds.lenses.lens_by_name import as_lens
    from trueodds.tallies.tally import lens_views

    if not (_bounds_an_error(gate) and is_lens_on_classes(lens_name)):
        return None
    rows, lens = restrict_to_region(rows, region), as_lens(gate.lens or lens_name)
    rate = EventRate.from_views(lens.name, lens_views(rows, lens))
    return None if rate is None else rate.margin_note("bound", gate.limit)


def _note_on_rate(gate: Gate, event_rate: float | None, rates_of_groups: Mapping[str, float | None]) -> Note | None:
    """Return the note for the event rate of all rows, of the gate's group, or of "worst", the rarest of all groups."""
    from trueodds.hypotests.equivalence import EventRate

    if not _bounds_an_error(gate):
        return None
    rates = [event_rate]
    if gate.group is not None:
        rates = list(rates_of_groups.values()) if gate.group == WORST_GROUP else [rates_of_groups.get(gate.group)]
    known_rates = [EventRate.from_rate(rate) for rate in rates if rate is not None]
    if not known_rates:
        return None
    return min(known_rates, key=lambda rate: rate.value or 1.0).margin_note("bound", gate.limit)


def _bounds_an_error(gate: Gate) -> bool:
    """Return whether the gate fails for large values of an error in units of probability."""
    from trueodds.estimators import ESTIMATORS
    from trueodds.estimators.base import Estimator

    if not gate.operator or not gate.fails_above or gate.part == "noise_floor" or gate.name not in ESTIMATORS:
        return False
    estimator = make_default_estimator(gate.name)
    return isinstance(estimator, Estimator) and estimator.is_in_probability_units
