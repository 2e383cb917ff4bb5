"""Which column of outcomes belongs to which column of probabilities, and which is missing?"""

from __future__ import annotations

from trueodds.core.errors import InputError
from trueodds.io.plan import numbered


def aligned(
    truth: tuple[str, ...],
    truth_names: dict[str, str] | None,
    probs: tuple[str, ...],
    suffixes: tuple[str, ...] | None,
    kind: str,
    name: str,
) -> tuple[str, ...]:
    """The outcome columns in the order of the probability columns: v_dog belongs to p_dog wherever it stands."""
    if len(truth) == 1:  # a column of lists, whose order only its writer knows
        return truth
    if len(truth) != len(probs):
        raise InputError(
            "TO313",
            f"{kind} and probs of {name} must have as many columns.",
            f"{len(truth)} and {len(probs)}{_alone(truth_names, suffixes, truth, probs)}",
            "Name one column of outcomes per column of probabilities.",
        )
    by_suffix = {suffix: column for column, suffix in (truth_names or {}).items()}
    if suffixes is None or set(by_suffix) == set(truth) or set(suffixes) == set(probs):
        return truth  # named one by one: in the order of the names
    if set(by_suffix) == set(suffixes):
        return tuple(by_suffix[suffix] for suffix in suffixes)
    if tuple(by_suffix) == numbered(len(truth)):
        return truth
    classes = frozenset(suffixes)
    odd = next(suffix for suffix in by_suffix if suffix not in classes)
    raise InputError(
        "TO313",
        f"The columns of {kind} and probs of {name} must name the same classes.",
        f"{by_suffix[odd]!r} without a probability column that ends alike",
        "Rename the columns, or list both in one order.",
    )


def _alone(
    truth_names: dict[str, str] | None, suffixes: tuple[str, ...] | None, truth: tuple[str, ...], probs: tuple[str, ...]
) -> str:
    """The first column without one that ends alike, where what the names share says what is missing."""
    ends = dict(zip(probs, suffixes, strict=True)) if suffixes else {}
    known = dict(truth_names or {})
    for there, ours, others in ((ends, probs, known), (known, truth, ends)):
        paired = {None, *others.values()}
        one = next((column for column in ours if there.get(column) not in paired), None)
        like = next(((name, end) for name, end in others.items() if name != end and name.count(end) == 1), None)
        if one is not None and one != there[one] and like is not None:
            return f": {like[0].replace(like[1], there[one])} is missing (there is {one})"
    return ""
