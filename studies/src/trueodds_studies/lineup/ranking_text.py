"""What do the orders come to in words, and what does the paper say beside it? Every number is read from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from trueodds_studies.base import counted, span
from trueodds_studies.lineup import ranking_tables
from trueodds_studies.lineup.measures import FIRST, MEASURES
from trueodds_studies.lineup.orders import tau
from trueodds_studies.lineup.subsample_pvalues import AT
from trueodds_studies.resumable_runs import Row

FROM = "Quoted or shortened from sections 2.1 and 4.3 of Vaicenavicius et al. (2019)."
KINDS = {"raw": "raw errors", "corrected": "corrected errors", "score": "proper scores"}


def sentence(by_measure: Sequence[Row]) -> str:
    """How alike the orders are, and how many of the pairs are settled, by kind of measure."""
    phrases = []
    for kind, kind_rows in by_kind(by_measure).items():
        settled = [sum(ranking_tables.settled_pairs(row).values()) for row in kind_rows]
        count = len(kind_rows[0]["pairs"])
        phrases.append(f"{KINDS[kind]} settle {span(settled, 0)} of {counted(count, 'pair')}")
    alike = [ranking_tables.agreement(a, b)[0] for a, b in combinations(by_measure, 2)]
    nets, measures = counted(len(by_measure[0]["models"]), "net"), counted(len(by_measure), "measure")
    between = (
        f" Kendall's tau between two orders is {span(alike, 2)}, {np.mean(alike):.2f} on average." if alike else ""
    )
    return f"{nets}, {measures}: {'; '.join(phrases)}.{between}"


def orders(by_measure: Sequence[Row]) -> str:
    """Which net is first and last by how many measures, and how often a pair turns."""
    firsts, lasts = ([_end(row, which) for row in by_measure] for which in (0, -1))
    shares = [np.mean(list(ranking_tables.turned(row).values())) for row in by_measure]
    return (
        f"First: {_counts(firsts)}; last: {_counts(lasts)}. In halves of the rows a pair turns in "
        f"{span((100 * float(share) for share in shares), 0)} % on average, by measure."
    )


def pairs(by_measure: Sequence[Row]) -> str:
    """Whether any two measures settle a pair in opposite ways, and how many pairs no measure leaves open."""
    both, all_alike, count = opposite(by_measure), 0, len(by_measure[0]["pairs"])
    for a, b in combinations(ranking_tables.names(by_measure[0]), 2):
        all_alike += len({(a, b) in ranking_tables.settled_pairs(row) for row in by_measure}) == 1
    text = f"In {all_alike} of {counted(count, 'pair')} all measures have the same net before the other."
    if not both:
        return f"{text} No pair is settled one way by one measure and the other way by another."
    return f"{text} Settled one way by some measures and the other way by others: {', '.join(both)}."


def opposite(by_measure: Sequence[Row]) -> list[str]:
    """The pairs that some measures settle one way, and others the other way."""
    pair_names = []
    for a, b in combinations(ranking_tables.names(by_measure[0]), 2):
        one, other = (
            any(ranking_tables.settled_pairs(row).get(pair, False) for row in by_measure) for pair in ((a, b), (b, a))
        )
        if one and other:
            pair_names.append(f"{a} and {b}")
    return pair_names


def alike(by_measure: Sequence[Row]) -> str:
    """The least alike two orders of calibration, and how alike errors and scores are."""
    groups = by_kind(by_measure)
    errors = [*groups.get("raw", []), *groups.get("corrected", [])]
    inside = [(ranking_tables.agreement(a, b)[0], a, b) for a, b in combinations(errors, 2)]
    phrases = []
    if inside:
        value, a, b = min(inside, key=lambda entry: entry[0])
        phrases.append(f"Of two errors least alike are {a['measure']} and {b['measure']}, with tau {value:.2f}")
    across = [ranking_tables.agreement(a, b)[0] for a in errors for b in groups.get("score", [])]
    if across:
        phrases.append(f"between an error and a score it is {span(across, 2)}")
    return "; ".join(phrases) + "."


def pvalues(by_size: Sequence[Row]) -> str:
    """When the p-values are all alike, and when they go against the errors."""
    phrases = [
        f"{row['n']:,} rows {row['against']:.0%} (tied {row['tied']:.0%})" for row in ranking_tables.pvalues(by_size)
    ]
    return f"Pairs in which the larger error is not rejected and the smaller is: {', '.join(phrases)}."


def paper(
    by_measure: Sequence[Row], by_size: Sequence[Row], right: Mapping[str, Mapping[str, float]]
) -> tuple[Row, ...]:
    """Sentence by sentence."""
    groups = by_kind(by_measure)
    raw, scores = groups.get("raw", []), groups.get("score", [])
    statements = [
        (
            "comparing calibration of two models just in terms of the realizations of these estimators is unjustified",
            _open(raw),
        )
    ]
    statements.append(("(the same)", pairs(raw)))
    statements.append(("the two biases can differ significantly", _floors(raw)))
    statements.append((f"the larger estimate may have P > α > P' of the smaller, α = {AT:g}", pvalues(by_size)))
    if len(scores) > 1:
        values = [ranking_tables.agreement(a, b)[0] for a, b in combinations(scores, 2)]
        statements.append(
            (
                "different scoring rules can rank the same models differently",
                f"tau between them {span(values, 2)}. {pairs(scores)}",
            )
        )
    accuracy = -np.array([net["accuracy"] for net in right.values()])
    for kind, rows in groups.items():
        values = [float(tau(ranking_tables.numbers(row), accuracy)) for row in rows]
        claim = "expected scores do not quantify model calibration directly" if kind == "score" else "(beside it)"
        statements.append((claim, f"{KINDS[kind]}: tau with the order by accuracy {span(values, 2)}"))
    return tuple({"the paper": first, "here": second} for first, second in statements)


def by_kind(by_measure: Sequence[Row]) -> dict[str, list[Row]]:
    """The measures of each kind that there are."""
    groups: dict[str, list[Row]] = {}
    for row in by_measure:
        groups.setdefault(MEASURES[row["measure"]].kind, []).append(row)
    return groups


def _open(rows: Sequence[Row]) -> str:
    phrases = []
    for row in rows:
        settled = ranking_tables.settled_pairs(row)
        shares = ranking_tables.turned(row)
        worst = max(shares, key=lambda pair: shares[pair])
        if row["measure"] == FIRST:
            phrases.append(
                f"{FIRST}: {len(settled) - sum(settled.values())} of {counted(len(settled), 'pair')} not settled; most "
                f"often turned {worst[0]} and {worst[1]}, in {shares[worst]:.0%} of halves"
            )
    left = [100 * (1 - sum(ranking_tables.settled_pairs(row).values()) / len(row["pairs"])) for row in rows]
    return "; ".join([*phrases, f"by raw error {span(left, 0)} % of the pairs are not settled"])


def _floors(rows: Sequence[Row]) -> str:
    ranges = []
    for row in rows:
        floors = [model["floor"] for model in row["models"] if model["floor"] is not None]
        if floors and min(floors) > 0:
            ranges.append((max(floors) / min(floors), f"{row['measure']} {span(floors, 4)}"))
    ranges.sort(reverse=True)
    return f"noise floors of the nets: {'; '.join(text for _, text in ranges)}"


def _end(row: Row, which: int) -> str:
    order = np.argsort(ranking_tables.numbers(row), kind="stable")
    return ranking_tables.names(row)[int(order[which])]


def _counts(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    ordered = sorted(counts, key=lambda name: -counts[name])
    return ", ".join(f"{name} by {counts[name]}" for name in ordered)
