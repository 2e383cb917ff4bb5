"""Which subgroups are off, which are within what matters, which are open, and how far apart are they?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from trueodds.core.errors import InputError, Note
from trueodds.core.groups import Gap, Group
from trueodds.core.results import Estimate, percent
from trueodds.core.settings import NonNegative, Range, check
from trueodds.hypotests.among_groups import Judged
from trueodds.inference.comparing import gaps
from trueodds.inference.comparing.sides import Side
from trueodds.problem.predictions import Predictions
from trueodds.problem.subgroups import Partition, partitions

NAMED = 5  # subgroups that a note names one by one


def taken(preds: Predictions, crossings: Any, least: Any) -> list[Partition]:
    """The subgroups of every column, and with crossings of columns taken together; refuses what is no such question."""
    return partitions(preds, columns_together(len(preds.group), crossings, least))


def columns_together(columns: int, crossings: Any, least: Any) -> int:
    """How many of so many group columns are taken together at most."""
    crossings = check("crossings", crossings, bool | Annotated[int, Range(0)], False)
    check("least", least, NonNegative, 0.05)
    together = 2 if crossings is True else max(1, int(crossings))
    if together > max(1, columns):
        raise InputError(
            "TO203",
            "crossings is False, True, or how many group columns are taken together at most.",
            f"{crossings!r} with {columns} group columns",
            "Use 2 for every two columns.",
        )
    return together


@dataclass(frozen=True)
class Answered:
    """What is said of the subgroups: of each by itself, and of what lies between them."""

    groups: tuple[Group, ...]
    sides: tuple[Side, ...]
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]
    notes: tuple[Note, ...]


def answered(
    question: gaps.Question,
    preds: Predictions,
    found: Sequence[Partition],
    judged: Judged,
    least: float,
    alpha: float,
    against: str = "pairs",
    progress: Callable[[float], None] | None = None,
) -> Answered:
    """Every subgroup of the partitions with its error, its p-values and its standing, and the gaps of each partition."""
    groups = [group for each in found for group in each.groups]
    sides, told = [], []
    for number, (group, p, joint, seen) in enumerate(
        zip(groups, judged.pvalues, judged.joint, judged.seen_from, strict=True)
    ):
        side = question.side(preds, group, number)
        standing = _standing(side, joint, least, alpha)
        estimate = _on_the_same_draws(side, judged.floors[number] if judged.floors else None)
        told.append(
            Group(group.column, group.value, group.label, estimate, p, joint, seen, standing, *_direction(side))
        )
        sides.append(side)
        if progress is not None:
            progress((number + 1) / len(groups))
    differences, widest = _gaps(question, preds, found, sides, against)
    return Answered(
        tuple(told),
        tuple(sides),
        differences,
        widest,
        (*_not_judged(found), *notes_on(told, alpha, together=judged.together)),
    )


def standing(joint: float, low: float | None, high: float | None, least: float, alpha: float, best: float = 0.0) -> str:
    """`off`, `within` or `undecided`; never within where the interval is missing: what cannot be seen is not fine.

    >>> standing(0.01, 0.0, 0.02, 0.05, 0.05), standing(0.5, 0.0, 0.02, 0.05, 0.05), standing(0.5, None, None, 0.05, 0.05)
    ('off', 'within', 'undecided')
    """
    if joint <= alpha + 1e-12:
        return "off"
    if low is not None and high is not None and max(abs(low - best), abs(high - best)) < least:
        return "within"
    return "undecided"


def _on_the_same_draws(side: Side, floor: float | None) -> Estimate:
    """With the noise floor of the draws that judge all subgroups, where that is the floor meant: of labels, not votes."""
    told, estimator = side.estimate, side.asked.estimator
    drawn = estimator.redraws == "labels" and all(estimator.expected(view) is None for view in side.asked.views)
    if floor is None or told.noise_floor is None or not drawn or side.preds.votes is not None:
        return told
    return replace(told, noise_floor=floor)


def _direction(side: Side) -> tuple[float | None, float | None]:
    """The mean stated probability and the share that came; None where the lens has several views, or vectors."""
    view, *more = side.asked.views
    if more or view.joint:
        return None, None
    return float(view.w @ view.p / view.total), float(view.w @ view.y / view.total)


def _standing(side: Side, joint: float, least: float, alpha: float) -> str:
    ends = side.estimate.interval
    low, high = (None, None) if ends is None else (ends.low, ends.high)
    return standing(joint, low, high, least, alpha, side.asked.estimator.best)


def _gaps(
    question: gaps.Question, rows: Predictions, found: Sequence[Partition], sides: Sequence[Side], against: str
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The gaps asked for, and the widest of each column."""
    every, widest, start = [], [], 0
    for partition in found:
        mine, names = sides[start : start + len(partition.groups)], [each.label for each in partition.groups]
        start += len(mine)
        two = gaps.every_two(question, rows, partition.groups, mine)
        shown = two if against == "pairs" else gaps.from_the_rest(question, rows, partition.groups, mine)
        every += [
            Gap(partition.column, names[each.first], names[each.second] if against == "pairs" else "rest", each.value, each.interval)
            for each in shown
        ]  # fmt: skip
        if (most := gaps.widest(two, question.sure.level)) is not None:
            widest.append(Gap(partition.column, names[most[0]], names[most[1]], most[2], most[3]))
    return tuple(every), tuple(widest)


def _not_judged(found: Sequence[Partition]) -> list[Note]:
    """What was left out, or is empty."""
    notes = []
    for each in found:
        for left, why in ((each.smaller, "smaller than the largest 50"), (each.weightless, "without any weight")):
            if left:
                text = f"Groups of {each.column} that are not judged, {why}: {len(left):,} ({_named([one.label for one in left])})."
                notes.append(Note("TN151", text))
        if each.empty:
            notes.append(Note("TN152", f"Combinations of {each.column} without a row: {each.empty:,}."))
    return notes


def notes_on(told: Sequence[Group], alpha: float, *, together: bool = True) -> list[Note]:
    """Which subgroups have no interval because they have one row, and which are undecided.

    `together` says that all were judged on draws that hang together; else what would have been seen is unknown.
    """
    notes = []
    single = [each.label for each in told if each.n == 1]
    if single:
        text = f"One row tells nothing of how rows vary, so there is no interval for {_named(single)}."
        notes.append(Note("TN150", text))
    open_ = [each for each in told if each.standing == "undecided"]
    if open_:
        blind = [each.label for each in open_ if each.seen_from is None]
        more = (
            f" Whatever their outcomes, {_named(blind)} could not have been called off." if blind and together else ""
        )
        how = "; `seen_from` says which error would have been seen" if together else ""
        text = (
            f"Undecided at {percent(1 - alpha)}: {len(open_)} of {len(told)} groups. Not seen to be off is not shown to be "
            f"calibrated{how}.{more}"
        )
        notes.append(Note("TN153", text))
    return notes


def _named(labels: Sequence[str]) -> str:
    more = [f"{len(labels) - NAMED} more"] if len(labels) > NAMED else []
    return "; ".join([*labels[:NAMED], *more])
