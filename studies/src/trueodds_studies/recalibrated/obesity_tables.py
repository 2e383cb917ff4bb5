"""What do the splits say together? The tables of the obesity study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds_studies.base import Finding, counted, moved
from trueodds_studies.recalibrated import paper_comparison
from trueodds_studies.recalibrated.losses import changes, column, summarize_splits
from trueodds_studies.resumable_runs import Row

LEGEND = """Rows that no fit saw (132 of 2,111), mean over the splits if nothing else is said. baseline: the class that MCLLO's fit and test are
against. loss, worst: nats per row, mean and largest over splits, after 1/397 of the uniform is mixed in, as `auto` does; infinite: share of
splits whose log loss is infinite without that. se: of the mean over splits as if they were independent. p>.05: share of
splits in which MCLLO's likelihood-ratio test on these rows has p > 0.05, redrawn: the same with labels drawn anew (exact at any n);
test diverges: share in which its fit has no finite best parameters; fit diverges: the same of the recalibration's own fit. ECE:
confidence, 12 bins (√n). changed: share of rows whose label changes. MCLLO, no pull: its likelihood at the supremum, where MCLLO has
a slight pull if no finite parameters are best. Votes of 0: fits take 1e-12 for them, the test 1e-6."""


def obesity(results: Sequence[Row], settings: Row) -> Finding:
    """The tables, the one by method first."""
    also = (
        Finding("obesity.gains", gained(gains(results)), gains(results), settings, GAINS),
        Finding(
            "obesity.paper",
            "The paper's one split beside the middle of ours.",
            paper_comparison.paper(results),
            settings,
            paper_comparison.PAPER,
        ),
        Finding(
            "obesity.parameters",
            paper_comparison.finite_sentence(results),
            paper_comparison.estimates(results),
            settings,
            paper_comparison.ESTIMATES,
        ),
        Finding("obesity.floors", stood(floors(results)), floors(results), settings, FLOORS_LEGEND),
        Finding("obesity.splits", "Every split by itself.", splits(results), settings, SPLITS),
    )
    return Finding("obesity", sentence(results), by_method(results), settings, LEGEND, also)


def every(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per set of features, split, baseline and method."""
    return tuple(
        {"features": one["features"], "split": one["split"]} | dict(row) for one in results for row in one["rows"]
    )


def by_method(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per set of features, baseline and method, over the splits."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in every(results):
        groups.setdefault((row["features"], row["baseline"], row["method"]), []).append(row)
    return tuple(
        {"features": features, "baseline": baseline, "method": method} | _summarize_splits(rows)
        for (features, baseline, method), rows in groups.items()
    )


def _summarize_splits(rows: Sequence[Row]) -> dict[str, Any]:
    also = {
        "redrawn": float((column(rows, "p redrawn") > 0.05).mean()),
        "test diverges": float(column(rows, "test diverges").mean()),
        "fit diverges": float(column(rows, "fit diverges").mean()),
    }
    return summarize_splits(rows) | also


GAINS = """difference: log loss less that without recalibration on the same rows, mixed as above; below 0 is better; se: of its mean over splits as
if they were independent; wide: the same for rows that splits share, times √(1 + J · 132/1979) of J splits (Nadeau & Bengio 2003). worse:
share of splits in which it is above 0, and the worst. chose: what auto took, and how often."""
SHARED = 132 / 1979


def gains(results: Sequence[Row]) -> tuple[Row, ...]:
    """Each method against none on the same rows, over the splits."""
    rows = []
    for group in by_method(results):
        if group["method"] != "none":
            key = {name: group[name] for name in ("features", "baseline", "method")}
            method_rows, none = (
                [row for row in every(results) if _is(row, key | {"method": m})] for m in (key["method"], "none")
            )
            rows.append(key | changes(method_rows, none, shared=SHARED))
    return tuple(rows)


def _is(row: Row, key: Row) -> bool:
    return all(row[name] == value for name, value in key.items())


def gained(rows: Sequence[Row]) -> str:
    """What auto gains, in words."""
    phrases = [
        f"{row['difference']:+.3f}{'' if row['wide'] is None else ' ± ' + format(row['wide'], '.3f')} ({row['features']})"
        for row in rows
        if row["method"] == "auto"
    ]
    return f"What auto chooses changes the held-out log loss by {', '.join(phrases)} nats per row."


FLOORS_LEGEND = """What stands in for votes below it, before anything else; rows are divided by their sums. LRT: median over splits of the statistic on
the calibration rows (12 degrees of freedom); p: median on the held-out rows; p>.05: share of splits. none, MCLLO, no pull, ridge, temperature:
mean held-out log loss as it is; mixed: the same with 1/397 of the uniform."""
FITS = ("none", "MCLLO", "no pull", "ridge", "temperature")


def floors(results: Sequence[Row]) -> tuple[Row, ...]:
    """The same with other values for votes of 0."""
    rows = []
    for features in dict.fromkeys(one["features"] for one in results):
        same = [one["floors"] for one in results if one["features"] == features]
        for i, first in enumerate(same[0]):
            at = [one[i] for one in same]
            row = {"features": features, "floor": str(first["floor"])}
            row |= {name: float(np.median(column(at, name))) for name in ("LRT", "p")}
            row |= {"p>.05": float((column(at, "p") > 0.05).mean())}
            rows.append(
                row
                | {f"{kind}{name}": float(column(at, kind + name).mean()) for kind in ("", "mixed ") for name in FITS}
            )
    return tuple(rows)


def stood(rows: Sequence[Row]) -> str:
    """How far the floor moves the held-out loss."""

    def largest_range(kind: str, names: Sequence[str]) -> float:
        return max(
            float(np.ptp([row[kind + name] for row in rows if row["features"] == features]))
            for features in {row["features"] for row in rows}
            for name in names
        )

    calm = ("none", "ridge", "temperature")
    return (
        f"Whatever stands in for votes of 0, from 1e-12 to half a vote, mean held-out log losses of no recalibration, the ridge and the temperature "
        f"move by {largest_range('mixed ', calm):.3f} nats at most with 1/397 of the uniform, and by {largest_range('', calm):.3f} as they are."
    )


SPLITS = """p: of the held-out rows, against Normal Weight. The methods: held-out log loss, mixed. zeros: share of the calibration rows' votes that
are 0; true zeros: outcomes with none, calibration and held-out rows together."""


def splits(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per set of features and split."""
    rows = []
    for one in results:
        method_rows = {row["method"]: row for row in one["rows"] if row["baseline"] == "Normal Weight"}
        row = {"features": one["features"], "split": one["split"], "accuracy": method_rows["none"]["accuracy"]}
        row |= {"zeros": one["zeros"], "true zeros": int(one["true zeros"] + one["true zeros judged"])}
        row |= {f"p {name}": method_rows[name]["p"] for name in ("none", "MCLLO", "MCLLO, ridge")}
        row |= {name: method_row["mixed"] for name, method_row in method_rows.items()}
        rows.append(row | {"auto chose": method_rows["auto"]["chose"]})
    return tuple(rows)


def sentence(results: Sequence[Row]) -> str:
    """What the study shows, for the set of features whose accuracy is nearest the paper's."""
    rows = by_method(results)
    features = "no Weight" if any(row["features"] == "no Weight" for row in rows) else rows[0]["features"]
    by = {row["method"]: row for row in rows if row["features"] == features and row["baseline"] == "Normal Weight"}
    loss = ", ".join(
        f"{by[name]['loss']:.3f} {label}"
        for name, label in (
            ("none", "without recalibration"), ("MCLLO", "after MCLLO"), ("MCLLO, no pull", "without its slight pull"),
            ("MCLLO, ridge", "with a ridge"), ("temperature on log p", "after a temperature"), ("auto", "by auto's choice"),
        )
    )  # fmt: skip
    none, after = by["none"], by["MCLLO"]
    return (
        f"A forest ({features}; {counted(none['splits'], 'split')}): held-out log loss {loss}. MCLLO's test passes "
        f"{none['p>.05']:.0%} of the splits before and {after['p>.05']:.0%} after MCLLO; ECE {moved(none['ECE'], after['ECE'])}."
    )
