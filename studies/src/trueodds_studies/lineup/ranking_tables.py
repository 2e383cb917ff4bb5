"""The tables of the comparison of models, from what was found of each measure and of each number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.base import counted
from trueodds_studies.lineup.measures import FIRST, MEASURES
from trueodds_studies.lineup.orders import flips, tau
from trueodds_studies.lineup.subsample_pvalues import AT, reversed_pairs
from trueodds_studies.resumable_runs import Row

TAU_COLUMNS = (
    FIRST,
    "canonical, tree",
    "debiased L2",
    "SKCE, blocks",
    "Brier",
    "log loss",
)  # the columns of the table of tau

VALUES = """kind: raw errors hold noise, corrected ones not or hardly, scores are proper and tell of more than calibration. low, high: 95 %
interval; none where no interval of measured coverage is known. floor: the mean if the model were calibrated. rank: 1 is the smallest; rank
low, high: the middle 95 % over random halves of the rows."""
ORDERS = """order: the smallest first; < where the two neighbors are settled by the joint 95 % intervals of all pairs, ? where not. settled: pairs
of all. turned: share of random halves of the rows in which a pair stands the other way round than in all rows, the mean over all pairs,
the most of a settled pair, and the mean of the others. No pair is settled where no interval is known, as of squares."""
NETS = "confidence: mean largest probability. The last columns: places by three measures and by accuracy, 1 the best."
PAIRS = """smaller: by how many measures the first of the pair has the smaller number, and the second. settled: so many of these are settled.
turned: the share of halves in which the pair turns, least and most over the measures."""
TAU = """Kendall's tau of two orders: 1 if all pairs are alike, −1 if none is, and the middle 95 % over random halves of the rows, the same for
both measures."""
PVALUES = f"""Random sets of n rows, the same for all nets: mean ECE (15 bins), median p of the consistency test, share of sets that reject at
{AT:g}. tied: pairs of nets with equal p. against: pairs of which the one with the larger ECE is not rejected and the other is. tau: Kendall's,
between the order by ECE and that by falling p, a tie counted as 0."""


def values(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure and net."""
    rows = []
    for row in by_measure:
        ranks = places(numbers(row))
        drawn = np.quantile(places(np.array(row["halves"])), (0.025, 0.975), axis=0, method="inverted_cdf")
        for i, model in enumerate(row["models"]):
            entry = {"kind": MEASURES[row["measure"]].kind, "measure": row["measure"], **model, "n": row["n"]}
            entry |= {"rank": int(ranks[i]), "rank low": int(drawn[0, i]), "rank high": int(drawn[1, i])}
            rows.append(entry)
    return tuple(rows)


def numbers(row: Row) -> Array:
    """The number of each net."""
    return np.array([model["value"] for model in row["models"]])


def names(row: Row) -> list[str]:
    """The nets in the order of the numbers."""
    return [model["net"] for model in row["models"]]


def places(numbers: Array) -> Array:
    """The place of each along the last axis, 1 for the smallest.

    >>> places(np.array([[0.3, 0.1, 0.2]])).tolist()
    [[3, 1, 2]]
    """
    return np.asarray(numbers.argsort(axis=-1, kind="stable").argsort(axis=-1) + 1)


def settled_pairs(row: Row) -> dict[tuple[str, str], bool]:
    """Whether each pair is settled; the pair is named with the smaller number first."""
    settled = {}
    for pair in row["pairs"]:
        first, second = pair["pair"]
        settled[(first, second) if pair["difference"] <= 0 else (second, first)] = pair["settled"]
    return settled


def turned(row: Row) -> dict[tuple[str, str], float]:
    """How often each pair stands the other way round in the halves, the pairs named as in `settled_pairs`."""
    net_names, scores = names(row), numbers(row)
    turn_shares = {}
    for (i, j), share in zip(
        combinations(range(len(net_names)), 2), flips(scores, np.array(row["halves"])), strict=True
    ):
        turn_shares[(net_names[i], net_names[j]) if scores[i] <= scores[j] else (net_names[j], net_names[i])] = float(
            share
        )
    return turn_shares


def orders(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure: its order, how much of it is settled, and how it turns."""
    rows = []
    for row in by_measure:
        settled, shares = settled_pairs(row), turned(row)
        beyond = [shares[pair] for pair, is_settled in settled.items() if is_settled]
        within = [shares[pair] for pair, is_settled in settled.items() if not is_settled]
        rows.append(
            {
                "kind": MEASURES[row["measure"]].kind,
                "measure": row["measure"],
                "order": in_order(row),
                "settled": f"{len(beyond)} of {len(settled)}",
                "turned": float(np.mean(list(shares.values()))),
                "most, settled": max(beyond, default=None),
                "mean, not settled": float(np.mean(within)) if within else None,
            }
        )
    return tuple(rows)


def in_order(row: Row) -> str:
    """The nets with the smallest first, and between neighbors whether that is settled."""
    net_names, settled = names(row), settled_pairs(row)
    order = [net_names[i] for i in np.argsort(numbers(row), kind="stable")]
    text = order[0]
    for first, second in pairwise(order):
        text += f" {'<' if settled.get((first, second)) else '?'} {second}"
    return text


def nets(right: Mapping[str, Mapping[str, float]], by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net: accuracy, confidence, and its place by some measures."""
    accuracy_rank = dict(zip(right, places(-np.array([scores["accuracy"] for scores in right.values()])), strict=True))
    rows = []
    for name, scores in right.items():
        entry: dict[str, Any] = {"net": name, **scores}
        for row in by_measure:
            if row["measure"] in (FIRST, "debiased L2", "Brier"):
                entry[row["measure"]] = int(places(numbers(row))[names(row).index(name)])
        rows.append(entry | {"by accuracy": int(accuracy_rank[name])})
    return tuple(rows)


def pairs(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per pair of nets: which is smaller by how many measures, and by how many that is settled."""
    measure_pairs = [(settled_pairs(row), turned(row)) for row in by_measure]
    rows = []
    for a, b in combinations(names(by_measure[0]), 2):
        first = [settled for settled, _ in measure_pairs if (a, b) in settled]
        second = [settled for settled, _ in measure_pairs if (b, a) in settled]
        shares = [
            share for _, turn_shares in measure_pairs for pair, share in turn_shares.items() if set(pair) == {a, b}
        ]
        rows.append(
            {
                "first": a,
                "second": b,
                "smaller": f"{len(first)} to {len(second)}",
                "settled": f"{sum(settled[a, b] for settled in first)} to {sum(settled[b, a] for settled in second)}",
                "turned, least": min(shares),
                "turned, most": max(shares),
            }
        )
    return tuple(rows)


def agreement(one: Row, other: Row) -> tuple[float, float, float]:
    """Kendall's tau of two measures' orders, and the middle 95 % of it over the halves."""
    drawn = tau(np.array(one["halves"]), np.array(other["halves"]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(tau(numbers(one), numbers(other))), float(low), float(high)


def taus(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure: how alike its order is to those of some others."""
    beside = [row for row in by_measure if row["measure"] in TAU_COLUMNS]
    rows = []
    for row in by_measure:
        entry: dict[str, Any] = {"measure": row["measure"]}
        for other in beside:
            value, low, high = agreement(row, other)
            entry[other["measure"]] = "" if other is row else f"{value:.2f} [{low:.2f}, {high:.2f}]"
        rows.append(entry)
    return tuple(rows)


def pvalues(by_size: Sequence[Row]) -> tuple[Row, ...]:
    """One row per number of rows, a column per net, and what the orders by p and by error have in common."""
    rows = []
    for row in by_size:
        errors, p = np.array(row["errors"]), np.array(row["pvalues"])
        entry: dict[str, Any] = {"n": row["n"], "sets": counted(len(p), "set")}
        for i, name in enumerate(row["nets"]):
            entry[name] = f"{errors[:, i].mean():.3f}, p {np.median(p[:, i]):.3f}, rejects {(p[:, i] <= AT).mean():.0%}"
        entry |= {"tied": tied(p), "against": against(errors, p), "tau": float(tau(errors, -p).mean())}
        rows.append(entry)
    return tuple(rows)


def tied(p: Array) -> float:
    """The share of pairs with equal p-values."""
    return float(np.mean([p[:, i] == p[:, j] for i, j in combinations(range(p.shape[1]), 2)]))


def against(errors: Array, p: Array) -> float:
    """The share of pairs of which the larger error is not rejected and the smaller is."""
    k = p.shape[1]
    return float(reversed_pairs(errors, p).sum() / (len(p) * k * (k - 1) / 2))
