"""Tables and figures of rankings, established pairs, Kendall's tau between measures, and p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.draw import draw
from trueodds.core.typing import Array
from trueodds.diagrams.model_results import COLORS, MARKERS
from trueodds_studies.common.figures import make_figure, remove_frame, save_figure
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_count
from trueodds_studies.model_comparison.rankings import (
    ALPHA,
    DEFAULT_MEASURE,
    MEASURES,
    Models,
    kendall_tau,
    reversal_rates,
    reversed_pairs,
)

TAU_COLUMNS = (  # measures with a column in the table of tau
    DEFAULT_MEASURE,
    "canonical, tree",
    "debiased L2",
    "SKCE, blocks",
    "Brier",
    "log loss",
)

VALUES_LEGEND = """kind: raw errors contain noise, corrected ones little or none; scores are proper and measure more
than calibration. low, high: 95 % interval; none where no interval of measured coverage is known. noise floor: the
mean if the model were calibrated. rank: 1 is the smallest; rank low, high: the middle 95 % over random halves of the
rows."""
ORDERS_LEGEND = """order: increasing; < if the order of two neighbors is established by simultaneous 95 % intervals of
all pairs, ? if not. established: number of established pairs. reversed: share of random halves of the rows in which a
pair has the opposite order: mean over all pairs, maximum over established pairs, and mean over the others. No pair is
established if no interval is available, as for squares."""
NETWORKS_LEGEND = (
    "confidence: mean largest probability. The last columns: ranks by three measures and by accuracy, with 1 the best."
)
PAIRS_LEGEND = """smaller: number of measures for which the first of the pair has the smaller value, and number for
which the second has it. established: how many of these orders are established. reversed: share of halves in which the
order is reversed, minimum and maximum over the measures."""
TAU_LEGEND = """Kendall's tau of two rankings: 1 if all pairs agree, −1 if none does, and the central 95 % over random
halves of the rows, the same for both measures."""
PVALUES_LEGEND = f"""Random samples of n rows, the same for all networks: mean ECE (15 bins), median p of the
consistency test, rejection rate at {ALPHA:g}. tied: share of pairs of networks with equal p. contradictory: share of
pairs of which the network with the larger ECE is not rejected and the other is. tau: Kendall's tau between the rankings
by ECE and by decreasing p, with ties counted as 0."""


def value_table(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure and network: value with interval and noise floor, and rank with its range over the halves."""
    rows = []
    for row in by_measure:
        ranks = rank_values(model_values(row))
        rank_limits = np.quantile(rank_values(np.array(row["halves"])), (0.025, 0.975), axis=0, method="inverted_cdf")
        for i, model in enumerate(row["models"]):
            entry = {"kind": MEASURES[row["measure"]].kind, "measure": row["measure"], "network": model["net"]}
            entry |= {name: value for name, value in model.items() if name != "net"} | {"n": row["n"]}
            entry |= {"rank": int(ranks[i]), "rank low": int(rank_limits[0, i]), "rank high": int(rank_limits[1, i])}
            rows.append(entry)
    return tuple(rows)


def model_values(row: Row) -> Array:
    """The value of each network by the measure of a row, (models,)."""
    return np.array([model["value"] for model in row["models"]])


def network_names(row: Row) -> list[str]:
    """The names of the networks, in the order of `model_values`."""
    return [model["net"] for model in row["models"]]


def rank_values(numbers: Array) -> Array:
    """The rank of each value along the last axis, 1 for the smallest.

    >>> rank_values(np.array([[0.3, 0.1, 0.2]])).tolist()
    [[3, 1, 2]]
    """
    return np.asarray(numbers.argsort(axis=-1, kind="stable").argsort(axis=-1) + 1)


def settled_pairs(row: Row) -> dict[tuple[str, str], bool]:
    """Whether the order of each pair is established; the network with the smaller value is named first."""
    settled = {}
    for pair in row["pairs"]:
        first, second = pair["pair"]
        settled[(first, second) if pair["difference"] <= 0 else (second, first)] = pair["settled"]
    return settled


def pair_reversal_rates(row: Row) -> dict[tuple[str, str], float]:
    """How often the order of each pair is reversed in the halves, with pairs as in `settled_pairs`."""
    names, values = network_names(row), model_values(row)
    rates = {}
    for (i, j), rate in zip(
        combinations(range(len(names)), 2), reversal_rates(values, np.array(row["halves"])), strict=True
    ):
        smaller, larger = (i, j) if values[i] <= values[j] else (j, i)
        rates[names[smaller], names[larger]] = float(rate)
    return rates


def order_table(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure: its ranking, the established pairs, and the reversals."""
    rows = []
    for row in by_measure:
        settled, rates = settled_pairs(row), pair_reversal_rates(row)
        settled_rates = [rates[pair] for pair, is_settled in settled.items() if is_settled]
        other_rates = [rates[pair] for pair, is_settled in settled.items() if not is_settled]
        rows.append(
            {
                "kind": MEASURES[row["measure"]].kind,
                "measure": row["measure"],
                "order": format_order(row),
                "established": f"{len(settled_rates)} of {len(settled)}",
                "reversed": float(np.mean(list(rates.values()))),
                "maximum reversed, established": max(settled_rates, default=None),
                "mean reversed, others": float(np.mean(other_rates)) if other_rates else None,
            }
        )
    return tuple(rows)


def format_order(row: Row) -> str:
    """The networks in increasing order as text, with `<` between neighbors whose order is established, else `?`."""
    names, settled = network_names(row), settled_pairs(row)
    order = [names[i] for i in np.argsort(model_values(row), kind="stable")]
    text = order[0]
    for first, second in pairwise(order):
        text += f" {'<' if settled.get((first, second)) else '?'} {second}"
    return text


def network_table(accuracies: Mapping[str, Mapping[str, float]], by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network: accuracy, confidence, and its rank by some measures."""
    accuracy_rank = dict(
        zip(accuracies, rank_values(-np.array([scores["accuracy"] for scores in accuracies.values()])), strict=True)
    )
    rows = []
    for name, scores in accuracies.items():
        entry: dict[str, Any] = {"network": name, **scores}
        for row in by_measure:
            if row["measure"] in (DEFAULT_MEASURE, "debiased L2", "Brier"):
                entry[row["measure"]] = int(rank_values(model_values(row))[network_names(row).index(name)])
        rows.append(entry | {"rank by accuracy": int(accuracy_rank[name])})
    return tuple(rows)


def pair_table(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per pair of networks: how many measures are smaller for each of them, and how many establish this."""
    settled_by_measure = [settled_pairs(row) for row in by_measure]
    rates_by_measure = [pair_reversal_rates(row) for row in by_measure]
    rows = []
    for a, b in combinations(network_names(by_measure[0]), 2):
        first = [settled[a, b] for settled in settled_by_measure if (a, b) in settled]
        second = [settled[b, a] for settled in settled_by_measure if (b, a) in settled]
        rates = [by_pair[a, b] if (a, b) in by_pair else by_pair[b, a] for by_pair in rates_by_measure]
        rows.append(
            {
                "first": a,
                "second": b,
                "smaller": f"{len(first)} to {len(second)}",
                "established": f"{sum(first)} to {sum(second)}",
                "reversed, minimum": min(rates),
                "reversed, maximum": max(rates),
            }
        )
    return tuple(rows)


def tau_interval(one: Row, other: Row) -> tuple[float, float, float]:
    """Kendall's tau of the rankings by two measures, and its central 95 % over the halves."""
    tau_in_halves = kendall_tau(np.array(one["halves"]), np.array(other["halves"]))
    low, high = np.quantile(tau_in_halves, (0.025, 0.975))
    return float(kendall_tau(model_values(one), model_values(other))), float(low), float(high)


def tau_table(by_measure: Sequence[Row]) -> tuple[Row, ...]:
    """One row per measure: Kendall's tau between its ranking and those by the measures in TAU_COLUMNS."""
    column_rows = [row for row in by_measure if row["measure"] in TAU_COLUMNS]
    rows = []
    for row in by_measure:
        entry: dict[str, Any] = {"measure": row["measure"]}
        for other in column_rows:
            value, low, high = tau_interval(row, other)
            entry[other["measure"]] = "" if other is row else f"{value:.2f} [{low:.2f}, {high:.2f}]"
        rows.append(entry)
    return tuple(rows)


def pvalue_table(by_size: Sequence[Row]) -> tuple[Row, ...]:
    """One row per number of rows, a column per network, and the agreement of the rankings by p and by error."""
    rows = []
    for row in by_size:
        errors, p = np.array(row["errors"]), np.array(row["pvalues"])
        entry: dict[str, Any] = {"n": row["n"], "samples": format_count(len(p), "sample")}
        for i, name in enumerate(row["nets"]):
            entry[name] = (
                f"{errors[:, i].mean():.3f}, p {np.median(p[:, i]):.3f}, rejects {(p[:, i] <= ALPHA).mean():.0%}"
            )
        entry |= {
            "tied": tied_share(p),
            "contradictory": contradiction_share(errors, p),
            "tau": float(kendall_tau(errors, -p).mean()),
        }
        rows.append(entry)
    return tuple(rows)


def tied_share(p: Array) -> float:
    """The share of pairs of networks with equal p-values p, (draws, models)."""
    return float(np.mean([p[:, i] == p[:, j] for i, j in combinations(range(p.shape[1]), 2)]))


def contradiction_share(errors: Array, p: Array) -> float:
    """The share of pairs of networks of which the one with the larger error is not rejected and the other is."""
    k = p.shape[1]
    return float(reversed_pairs(errors, p).sum() / (len(p) * k * (k - 1) / 2))


def draw_ranks(by_measure: Sequence[Row], path: Path) -> None:
    """Draw ranks, a column per measure, a line per network; neighbors are joined if their order is not established."""
    figure = make_figure((2.6 + 0.56 * len(by_measure), 5.4))
    ax = figure.subplots()
    names = network_names(by_measure[0])
    ranks = np.array([rank_values(model_values(row)) for row in by_measure])  # (measures, networks)
    for x, row in enumerate(by_measure):
        settled, rank_of = settled_pairs(row), dict(zip(names, ranks[x], strict=True))
        in_order = sorted(names, key=lambda net: rank_of[net])
        for first, second in pairwise(in_order):
            if not settled.get((first, second), False):
                ax.plot(
                    [x, x], [rank_of[first], rank_of[second]], color="#c9c9c9", lw=11, solid_capstyle="round", zorder=1
                )
    for i, net in enumerate(names):
        ax.plot(range(len(by_measure)), ranks[:, i], marker=MARKERS[i], ms=7, lw=1.6, color=COLORS[i], zorder=3)
        end = len(by_measure) - 1
        ax.text(-0.45, ranks[0, i], f"{net}  {ranks[0, i]}", ha="right", va="center", fontsize=9, color=COLORS[i])
        ax.text(
            end + 0.45, ranks[end, i], f"{ranks[end, i]}  {net}", ha="left", va="center", fontsize=9, color=COLORS[i]
        )
    kinds = [MEASURES[row["measure"]].kind for row in by_measure]
    for x in range(1, len(kinds)):
        if kinds[x] != kinds[x - 1]:
            ax.axvline(x - 0.5, color="#999999", lw=0.8, ls=(0, (4, 3)), zorder=0)
    for kind in dict.fromkeys(kinds):
        ax.text(_midpoint(kinds, kind), 0.42, kind, ha="center", va="center", fontsize=9, color="#555555")
    ax.set_xticks(range(len(kinds)), [row["measure"] for row in by_measure], rotation=40, ha="right", fontsize=9)
    ax.set_yticks([])
    ax.set_xlim(-0.6, len(kinds) - 0.4)
    ax.set_ylim(len(names) + 0.5, 0.2)
    ax.plot(
        [],
        [],
        color="#c9c9c9",
        lw=9,
        solid_capstyle="round",
        label="neighbors whose order is not established; 1 is the smallest",
    )
    figure.legend(loc="outside upper right", frameon=False, fontsize=9)
    remove_frame(ax, ("top", "right", "left", "bottom"), label_size=9)
    save_figure(figure, path)


def draw_agreement(by_measure: Sequence[Row], path: Path) -> None:
    """Draw a heat map of Kendall's tau between the rankings."""
    k = len(by_measure)
    taus = np.array([[tau_interval(a, b)[0] for b in by_measure] for a in by_measure])
    figure = make_figure((2.2 + 0.47 * k, 1.9 + 0.4 * k))
    ax = figure.subplots()
    ax.imshow(taus, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    for i in range(k):
        for j in range(k):
            color = "white" if abs(taus[i, j]) > 0.7 else "#222222"
            ax.text(j, i, f"{taus[i, j]:.2f}", ha="center", va="center", fontsize=8, color=color)
    labels = [row["measure"] for row in by_measure]
    ax.set_xticks(range(k), labels, rotation=40, ha="right", fontsize=9)
    ax.set_yticks(range(k), labels, fontsize=9)
    ax.set_title("Kendall's tau between the rankings of the networks", fontsize=10)
    remove_frame(ax, ("top", "right", "left", "bottom"), label_size=9)
    save_figure(figure, path)


def draw_reliability(nets: Models, path: Path) -> None:
    """Draw reliability diagrams of all networks, with noise floors and differences from the first."""
    draw(dict(nets), "comparison", lens="confidence").save(path)


def _midpoint(kinds: Sequence[str], kind: str) -> float:
    """The mean position of the measures of a kind."""
    return float(np.mean([x for x, other in enumerate(kinds) if other == kind]))
