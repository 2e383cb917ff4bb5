"""How is it said which of several models is off by less, and whether chance explains the difference?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueodds.diagrams.models.model_results import ModelResult

NOTHING = 1e-12  # what rounding leaves of zero
ROUNDING = 1e-10  # by which sums in another order may differ


def number(x: float) -> str:
    """An error as people read it: four decimals, and of a small one three digits.

    >>> number(0.25), number(-0.0000421), number(3e-17)
    ('0.2500', '−0.0000421', '0')
    """
    if not math.isfinite(x):
        return "∞" if x > 0 else "–"
    if abs(x) < NOTHING:
        return "0"
    small = 4 if abs(x) >= 1e-3 else 2 - math.floor(math.log10(abs(x)))
    text = f"{x:.2e}" if abs(x) < 1e-6 else f"{x:.{small}f}"
    return text.replace("-", "−")


def range_of(low: float, high: float) -> str:
    """An interval, empty where there is none."""
    return f" [{number(low)}, {number(high)}]" if math.isfinite(low) and math.isfinite(high) else ""


def tied(values: Sequence[float], optimum: float) -> list[int]:
    """Which values are the best one, but for rounding."""
    return [
        i
        for i, value in enumerate(values)
        if value == optimum or abs(value - optimum) <= ROUNDING * max(1, abs(optimum))
    ]


def listed(names: Sequence[str]) -> str:
    """Names in a row: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def verdict(names: Sequence[str], results: Sequence[ModelResult], unit: str) -> str:
    """Which model is off by less, and where that is more than chance."""
    if len(names) == 1:
        return f"{unit} {number(results[0].error)}{_noise_floor(results[0])}."
    if len(names) == 2:
        return _of_two(names, results, unit)
    order = sorted(range(len(names)), key=lambda i: (math.isnan(results[i].error), results[i].error, names[i]))
    leader = results[order[0]]
    leaders = [order[0], *(i for i in tied([one.error for one in results], leader.error) if i != order[0])]
    names_text, value_text = (
        listed(sorted(names[i] for i in leaders)),
        f"{number(leader.error)}{_tied_noise_floor([results[i] for i in leaders])}",
    )
    text = f"{names_text} {'has' if len(leaders) == 1 else 'have'} the {_extent(leaders, names)} {unit}: {value_text}."
    if all(math.isnan(one.difference_low) for one in results):
        others = [f"{names[i]} {number(results[i].error)}" for i in order if i not in leaders]
        if not others:
            return text
        rest = listed(others)
        return f"{text} The others: {rest}."
    better, worse, unsettled = (
        [f"{names[i]} ({number(results[i].error)})" for i in order if i and _difference_sign(results[i]) == sign]
        for sign in (-1, 1, 0)
    )
    first = f"{names[0]} ({number(results[0].error)})"
    if not better and not worse:
        return f"{text} None differs from {first} beyond chance."
    phrases = [f"{listed(some)} {_is(some)} {word}" for some, word in ((better, "better"), (worse, "worse")) if some]
    text += f" Beyond chance, against {first}: {', '.join(phrases)}."
    return f"{text} Not settled: {listed(unsettled)}." if unsettled else text


def _difference_sign(one: ModelResult) -> int | None:
    """Whether it differs beyond chance; one that is the first model over again is no open question."""
    return None if one.difference_low == one.difference_high == 0 else one.settled


def _extent(leaders: Sequence[int], names: Sequence[str]) -> str:
    return "same" if len(leaders) == len(names) else "smallest"


def _is(some: Sequence[str]) -> str:
    return "is" if len(some) == 1 else "are"


def _of_two(names: Sequence[str], results: Sequence[ModelResult], unit: str) -> str:
    first, second = results
    better, worse = (1, 0) if second.error < first.error else (0, 1)
    a, b = results[better], results[worse]
    text = f"{names[better]}: {unit} {number(a.error)}{_noise_floor(a)}; {names[worse]}: {number(b.error)}{_noise_floor(b)}."
    same = len(tied([first.error, second.error], first.error)) == 2
    if same:
        text = f"{listed(sorted(names))} have the same {unit}: {number(a.error)}{_tied_noise_floor(results)}."
    if math.isnan(second.difference) or (same and second.difference_low == second.difference_high):
        return text
    sign = 1 if second.difference >= 0 else -1
    low, high = sorted((sign * second.difference_low, sign * second.difference_high))
    if math.isnan(low):
        return f"{text} They differ by {number(abs(second.difference))}."
    settled = "is more than chance" if second.settled else "may be chance"
    return f"{text} The difference, {number(abs(second.difference))}{range_of(low, high)}, {settled}."


def _noise_floor(result: ModelResult) -> str:
    return "" if math.isnan(result.noise_floor) else f" (noise\u00a0floor\u00a0{number(result.noise_floor)})"


def _tied_noise_floor(results: Sequence[ModelResult]) -> str:
    """The floor of models that tie, which their draws may tell apart: then none is said."""
    texts = {_noise_floor(one) for one in results}
    return texts.pop() if len(texts) == 1 else ""
