"""Rejection rates of tests in simulations: Clopper-Pearson limits, whether a test keeps its level, and summaries.

The rows are those of the studies `level` and `mcllo_power`: one per test, design and number of rows. Note TN212 says
that an asymptotic null distribution is inaccurate for the data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from trueodds.resampling.intervals.closed_form import clopper_pearson_limits
from trueodds_studies.common.resumable_runs import Row


def clopper_pearson(hits: int, sets: int, level: float = 0.99) -> tuple[float, float]:
    """Exact confidence limits of a rate: each is exceeded with probability (1 − level) / 2 at most.

    Source: Clopper & Pearson (1934).

    >>> low, high = clopper_pearson(0, 10, level=0.95)
    >>> low, round(high, 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    low, high = clopper_pearson_limits(hits, sets, (1 - level) / 2)
    return float(low), float(high)


def exceeds_level(hits: int, sets: int, nominal: float, rates: int = 1) -> bool:
    """Whether the lower 99 % limit of a rate, with Bonferroni's correction for `rates`, exceeds the nominal level.

    >>> exceeds_level(60, 400, 0.05), exceeds_level(30, 400, 0.05)
    (True, False)
    """
    return sets > 0 and clopper_pearson(hits, sets, 1 - 0.01 / rates)[0] > nominal


LEVELS = {"5": 0.05, "1": 0.01}  # by percent, which ends the column names
POWER_ROWS = 500  # number of rows at which power is summarized; with more, nearly every miscalibration is detected


def add_verdicts(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Add the column `verdict`, with Bonferroni's correction for all rates of the table (two per row)."""
    return tuple({**row, "verdict": size_verdict(row, 2 * len(rows))} for row in rows)


def size_verdict(row: Row, rates: int) -> str:
    """Whether a test keeps its level in the data sets of a row.

    `keeps`, `exceeds`, `exceeds, noted` if note TN212 warns of it, or `undefined` if no data set has a p-value. `rates`
    is the number of rates for Bonferroni's correction.
    """
    if row["undefined"] == 1:
        return "undefined"
    exceeded = [
        (name, nominal)
        for name, nominal in LEVELS.items()
        if exceeds_level(count_rejections(row, name), row["sets"], nominal, rates)
    ]
    if not exceeded:
        return "keeps"
    noted = all(_is_noted(row, name, nominal, rates) for name, nominal in exceeded)
    return "exceeds, noted" if noted else "exceeds"


def _is_noted(row: Row, name: str, nominal: float, rates: int) -> bool:
    """Whether most rejections have note TN212, and the data sets without it keep the level."""
    sets_without_note = round(row["sets"] * (1 - row["noted"]))
    rejections_without_note = round((row[f"unnoted{name}"] or 0.0) * sets_without_note)
    noted_in_majority = 2 * rejections_without_note < count_rejections(row, name)
    return noted_in_majority and not exceeds_level(rejections_without_note, sets_without_note, nominal, rates)


def count_rejections(row: Row, name: str) -> int:
    """Number of data sets of the row that were rejected at the level with this name."""
    return round(row[f"size{name}"] * row["sets"])


def summarize_by_test(rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per test and null distribution: size over all cells, the largest size with its cell, and power."""
    table: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        table.setdefault((row["test"], row["null"]), []).append(row)
    return tuple(_test_row(name, null, cells) for (name, null), cells in table.items())


def _test_row(name: str, null: str, cells: Sequence[Row]) -> Row:
    """The summary of all rows of one test and null distribution."""
    entry: dict[str, Any] = {"test": name, "null": null, "cells": len(cells)}
    for level in LEVELS:
        count, sets = _pooled_counts(cells, level)
        entry[f"size at {level} %"] = _format_limits(count / sets, *clopper_pearson(count, sets))
        largest_size = max(cells, key=itemgetter(f"low{level}"))
        limits = _format_limits(*(largest_size[f"{column}{level}"] for column in ("size", "low", "high")))
        entry[f"largest at {level} %"] = f"{limits} {largest_size['design']}, n = {largest_size['n']:,}"
    entry["exceeds, noted"] = _count_verdicts(cells, "exceeds, noted")
    entry["exceeds, not noted"] = _count_verdicts(cells, "exceeds")
    entry["undefined"] = _format_percent(sum(row["undefined"] for row in cells) / len(cells))
    power_rows = min(POWER_ROWS, max(row["n"] for row in cells))
    for kind in ("overconfident", "shift"):
        powers = [row[f"power_{kind}"] for row in cells if row["n"] == power_rows]
        entry[f"power: {kind}"] = f"{_format_percent(min(powers))} … {_format_percent(max(powers))}"
    return entry


BY_TEST_LEGEND = f"""One row per test and null distribution, over all cells of the study; [99 % Clopper-Pearson
limits]. largest: the cell with the highest lower limit. exceeds: cells whose size is above its level by more than
Monte Carlo error; noted: the note TN212 warns of it. undefined: share of data sets without a p-value. power: at 5 %
and n = {POWER_ROWS} (or the largest n), minimum and maximum over designs."""


def summarize_sizes(rows: Sequence[Row]) -> str:
    """Summary in words of how often tests with redrawn labels and with other null distributions exceed their level."""
    redraw_rows = [row for row in rows if row["null"] == "redraw"]
    asymptotic = [row for row in rows if row["null"] not in ("redraw", "both")]
    noted = _count_verdicts(asymptotic, "exceeds, noted")
    unnoted = _count_verdicts(asymptotic, "exceeds")
    sentences = []
    if redraw_rows:
        wrong = _count_verdicts(redraw_rows, "exceeds") + _count_verdicts(redraw_rows, "exceeds, noted")
        names = {row["test"] for row in redraw_rows}
        counts_by_test = [_pooled_counts([row for row in redraw_rows if row["test"] == name], "5") for name in names]
        n_beyond = sum(exceeds_level(count, sets, LEVELS["5"], len(counts_by_test)) for count, sets in counts_by_test)
        shares = [count / sets for count, sets in counts_by_test]
        sentences.append(
            f"Redrawn labels: the size exceeds 5 or 1 % by more than Monte Carlo error in {wrong} of {len(redraw_rows)}"
            f" cells. Over all cells, {_describe_rejections(shares, n_beyond)}."
        )
    if asymptotic:
        sentences.append(
            f"Other null distributions: the size exceeds the level in {noted + unnoted} of {len(asymptotic)} cells;"
            f" {noted} of these have the note TN212, and {unnoted} do not."
        )
    return " ".join(sentences)


def _describe_rejections(shares: Sequence[float], n_beyond: int) -> str:
    """The pooled rejection rates of the tests in words, with the number of tests beyond Monte Carlo error."""
    if len(shares) == 1:
        return (
            f"the test rejects {_format_percent(shares[0])} at the 5 % level, {'' if n_beyond else 'not '}above it by"
            " more than Monte Carlo error"
        )
    range_text = f"{_format_percent(min(shares))} to {_format_percent(max(shares))}"
    return (
        f"the {len(shares)} tests reject {range_text} at the 5 % level, above it by more than Monte Carlo error in"
        f" {n_beyond} of them"
    )


def _pooled_counts(cells: Sequence[Row], level: str) -> tuple[int, int]:
    """Number of rejections, and of data sets, over several rows."""
    return sum(count_rejections(row, level) for row in cells), sum(row["sets"] for row in cells)


def _count_verdicts(rows: Sequence[Row], verdict: str) -> int:
    return sum(row["verdict"] == verdict for row in rows)


def _format_limits(rate: float, low: float, high: float) -> str:
    return f"{_format_percent(rate)} [{_format_percent(low)}, {_format_percent(high)}]"


def _format_percent(x: float) -> str:
    return f"{100 * x:.1f} %"
