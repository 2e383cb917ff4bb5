"""The tables of the study of networks, from what was measured of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueodds_studies.base import counted, span
from trueodds_studies.nets.catalog import NETS
from trueodds_studies.nets.net_errors import PARTITIONS
from trueodds_studies.resumable_runs import Row

LENSES = ("confidence", "groups", "canonical")
AT = 0.05

ERRORS = """lens: the largest probability, three groups of classes, or all classes. distance: tv is half the sum of absolute differences,
sq-euclidean the sum of their squares (of a confidence: of it and what is left to 1). low, high: 95 % interval, none for squares, of which no
interval has a coverage that was measured. floor: the mean if the net were calibrated. p: of the consistency test, labels redrawn."""
SHORT = """Each cell: error, total variation [95 % interval] (noise floor). p: largest of the consistency tests of that lens, all bins and both
distances."""
SQUARES = """Each cell: error, sum of squared differences (noise floor). p: largest of the consistency tests of that lens, all bins and both
distances."""
NETS_LEGEND = """right, sure: accuracy and mean confidence. outside: bins of the confidence beyond the 90 % bars. beyond: cells of 25 that stray
more than chance explains, 95 % with Holm's correction over all cells. Where a file has no probability of each class there is no triangle."""


def errors(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net, lens, bins and distance."""
    return tuple({**_whose(cell), **row} for cell in cells for row in cell["errors"])


def short(cells: Sequence[Row], distance: str = "tv") -> tuple[Row, ...]:
    """One row per net and lens, a column per partition."""
    rows = []
    for cell in cells:
        for lens in LENSES:
            lens_rows = [row for row in cell["errors"] if row["lens"] == lens]
            if lens_rows:
                entry = {**_whose(cell), "lens": lens}
                entry |= {row["bins"]: _format_estimate(row) for row in lens_rows if row["distance"] == distance}
                rows.append(entry | {"p": max(row["p"] for row in lens_rows)})
    return tuple(rows)


def nets(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net: how right, how sure, and how much of its diagrams strays."""
    rows = []
    for cell in cells:
        lines, corner = cell["outside"], cell["frequent"]
        entry = {**_whose(cell), "n": cell["n"], "right": cell["right"], "sure": cell["sure"]}
        for bins, counts in lines.items():
            entry[f"outside, {bins}"] = f"{counts['outside']} of {counts['bins']}"
        entry["beyond, 25 cells"] = None if corner is None else f"{corner['beyond']} of {corner['cells']}"
        rows.append(entry)
    return tuple(rows)


def sentence(cells: Sequence[Row]) -> str:
    """How far off they are, and how many are rejected by every bin and distance."""
    phrases = []
    for lens in LENSES:
        net_rows = [[row for row in cell["errors"] if row["lens"] == lens] for cell in cells]
        net_rows = [rows for rows in net_rows if rows]
        if net_rows:
            values = [row["value"] for rows in net_rows for row in rows if row["distance"] == "tv"]
            always = sum(max(row["p"] for row in rows) <= AT for rows in net_rows)
            phrases.append(
                f"{lens} {span(values)}, {always} of {counted(len(net_rows), 'net')} rejected by all bins and distances"
            )
    return f"Error of {counted(len(cells), 'net')} in total variation, over {len(PARTITIONS)} partitions: {'; '.join(phrases)}."


def noise(cells: Sequence[Row]) -> str:
    """How much of each error a calibrated net would have, too."""
    phrases = []
    for bins in PARTITIONS:
        shares = [
            100 * row["floor"] / row["value"]
            for cell in cells
            for row in cell["errors"]
            if row["bins"] == bins and row["distance"] == "tv" and row["lens"] == "canonical"
        ]
        if shares:
            phrases.append(f"{bins} {span(shares, 0)} %")
    return f"Noise floor as a share of the error of all classes: {'; '.join(phrases)}." if phrases else ""


def _whose(cell: Row) -> dict[str, Any]:
    return {"task": NETS[cell["net"]].task, "net": cell["net"]}


def _format_estimate(row: Row) -> str:
    """Value [low, high] (floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['value']:.4f}{between} ({row['floor']:.4f})"
