"""The tables of the study of confidence and correctness alone, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueodds_studies.resumable_runs import Row
from trueodds_studies.top1.network_results import SCORES


def estimators(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per estimator, a column per network: value [95 % interval] (noise floor)."""
    names = [row["estimator"] for row in cells[0]["estimates"]]
    table = []
    for name in names:
        rows = {cell["net"]: next(r for r in cell["estimates"] if r["estimator"] == name) for cell in cells}
        table.append({"estimator": name} | {net: format_estimate(row) for net, row in rows.items()})
    return tuple(table)


def tests(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per test, its p-value a column per network."""
    names = [row["test"] for row in cells[0]["tests"]]
    table = []
    for name in names:
        rows = {cell["net"]: next((r for r in cell["tests"] if r["test"] == name), None) for cell in cells}
        floors = [row["floor"] for row in rows.values() if row is not None]
        entry = {"test": name} | {net: None if row is None else row["p"] for net, row in rows.items()}
        table.append(entry | {"floor": next((min_prob for min_prob in floors if min_prob is not None), None)})
    return tuple(table)


def fixes(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """What `auto` did, and the scores of rows that it has not seen, before and after."""
    rows = []
    for cell in cells:
        row, entry = cell["fixed"], {"net": cell["net"], "fix": cell["fixed"]["fix"]}
        for score, _ in SCORES:
            for when in ("before", "after"):
                prefix = f"{score} {when}"
                parts = {"value": row[prefix], "low": row[f"{prefix} low"], "high": row[f"{prefix} high"]}
                entry[prefix] = format_estimate(parts | {"noise floor": row[f"{prefix} floor"]})
        rows.append(entry)
    return tuple(rows)


def risks(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Who may stay silent: AURC and the risk of the surest answers."""
    rows = []
    for cell in cells:
        row = dict(cell["risk"])
        area = format_estimate(
            {"value": row.pop("AURC"), "low": row.pop("low"), "high": row.pop("high"), "noise floor": None}
        )
        rows.append({"net": cell["net"], "AURC": area, **row})
    return tuple(rows)


def sentence(cells: Sequence[Row], needs: Sequence[Row]) -> str:
    """How much works, and what is found."""
    works = sum(row["works"] == "yes" for row in needs)
    with_min_prob = sum(row["works"].startswith("with floor") for row in needs)
    phrases = [
        f"{cell['net']} ECE {_value(cell, 'ece'):.4f}, after the fix {cell['fixed']['method']} {cell['fixed']['ECE after']:.4f} on other rows"
        for cell in cells
    ]
    return (
        f"Of {len(needs)} lenses and members of the registries {works} work on confidence and correctness alone, {with_min_prob} more with a floor, and "
        f"{len(needs) - works - with_min_prob} say what they need. {'; '.join(phrases)}."
    )


def format_estimate(row: Row) -> str:
    """Value [low, high] (noise floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.4f}, {row['high']:.4f}]"
    return f"{row['value']:.4f}{between}" + ("" if row["noise floor"] is None else f" ({row['noise floor']:.4f})")


def _value(cell: Row, name: str) -> float:
    return float(next(row["value"] for row in cell["estimates"] if row["estimator"] == name))
