"""Draw estimation errors, ranking, power and the best number of bins against the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueodds_studies.common.figures import BLUE, RED, make_figure, remove_frame, save_figure
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.estimators.estimator_variants import LENSES

FAMILY_COLORS = {"ece": "#7a7a7a", "ece_a": "#c79a2b", "ece_c": "#5b9a68", "ece_ac": "#7d5ba6", "kde": BLUE}
LINE_STYLES = {"10": "-", "30": ":", "sqrt": "--", "silverman": "-", "0.1": "--", "0.033": ":"}
SHOWN_COLORS = {
    "ece": "#7a7a7a",
    "ece debiased": "#222222",
    "ece_linear": "#5b9a68",
    "ece_linear debiased": "#1d5a30",
    "debiased_l1": "#c79a2b",
    "kde[silverman]": BLUE,
    "ece_ac[sqrt]": "#7d5ba6",
}


def draw_percentiles(rows: Sequence[Row], sizes: Sequence[int], path: Path) -> None:
    """Draw the 95th percentile of the error against n: a panel per lens, a line per estimator of the paper.

    Bands are the limits of the estimator with the best mean rank and of the constant 0, which is red.
    """
    figure = make_figure((11, 5.6))
    axes = figure.subplots(1, 2)
    for ax, lens in zip(axes, LENSES, strict=True):
        lens_rows = [row for row in rows if row["lens"] == lens]
        for row in lens_rows:
            family, _, setting = row["estimator"].rstrip("]").partition("[")
            if row["mean rank"] is not None:
                values = [row[str(n)] for n in sizes]
                ax.plot(
                    sizes, values, color=FAMILY_COLORS[family], ls=LINE_STYLES[setting], lw=1.3, label=row["estimator"]
                )
        ranked = [row for row in lens_rows if row["mean rank"] is not None]
        if ranked:
            leader = min(ranked, key=lambda row: float(row["mean rank"]))
            _draw_band(ax, leader, sizes, FAMILY_COLORS[leader["estimator"].partition("[")[0]])
        zero = next(row for row in lens_rows if row["estimator"] == "0")
        _draw_band(ax, zero, sizes, RED)
        ax.plot(sizes, [zero[str(n)] for n in sizes], color=RED, lw=1.8, label="the constant 0")
        ax.set_title(lens, fontsize=10)
        ax.set_ylabel("95 % of resamples are closer to the truth", fontsize=9)
        _set_size_axis(ax)
        ax.set_yscale("log")
        ax.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"], minor=False)
        ax.minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    save_figure(figure, path)


def draw_errors(rows: Sequence[Row], path: Path) -> None:
    """Draw bias, RMSE, share of pairs in order and power against n for seven estimators; a row of panels per lens."""
    figure = make_figure((12, 6.4))
    panels = (
        ("bias", "bias"),
        ("RMSE", "RMSE"),
        ("ordered correctly", "two models in order"),
        ("power", "told from calibrated"),
    )
    axes = figure.subplots(len(LENSES), len(panels), squeeze=False)
    for panel_row, lens in zip(axes, LENSES, strict=True):
        for ax, (name, title) in zip(panel_row, panels, strict=True):
            for label, color in SHOWN_COLORS.items():
                selected = [r for r in rows if (r["lens"], r["estimator"]) == (lens, label) and r[name] is not None]
                if selected:
                    ax.plot([r["n"] for r in selected], [r[name] for r in selected], color=color, lw=1.3, label=label)
            zero = [r for r in rows if (r["lens"], r["estimator"]) == (lens, "0") and r[name] is not None]
            if zero and name in ("RMSE", "ordered correctly"):
                ax.plot([r["n"] for r in zero], [r[name] for r in zero], color=RED, lw=1.6, label="the constant 0")
            if name == "bias":
                ax.axhline(0, color="#999999", lw=0.8)
            ax.set_title(f"{title}, {lens}", fontsize=9)
            _set_size_axis(ax)
    handles: dict[str, Any] = {}
    for ax in axes.ravel():
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)


def draw_bin_counts(rows: Sequence[Row], path: Path) -> None:
    """Draw the best number of bins against n; dotted lines are √n and n^(2/5)."""
    figure = make_figure((7, 4))
    ax = figure.subplots()
    sizes = [int(name.removeprefix("n = ")) for name in rows[0] if name.startswith("n = ")]
    for row in rows:
        color = BLUE if row["lens"] == LENSES[0] else "#7d5ba6"
        label = f"{row['lens']}, {row['partition']}: n^{row['exponent']:.2f} ± {row['se']:.2f}"
        dashes = "-" if row["partition"] == "uniform" else "--"
        ax.plot(sizes, [row[f"n = {n}"] for n in sizes], marker="o", ms=3, ls=dashes, lw=1.2, color=color, label=label)
    for power, text, color in ((0.5, "√n", "#999999"), (0.4, "n^(2/5)", "#c79a2b")):
        ax.plot(sizes, [n**power for n in sizes], ":", lw=1.2, color=color, label=text)
    ax.set_yscale("log")
    ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    ax.minorticks_off()
    ax.set_ylabel("number of bins with the smallest RMSE", fontsize=9)
    _set_size_axis(ax)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    save_figure(figure, path)


def _draw_band(ax: Any, row: Row, sizes: Sequence[int], color: str) -> None:
    """Fill the area between the limits of a row."""
    low, high = ([row[f"{n} {end}"] for n in sizes] for end in ("low", "high"))
    ax.fill_between(sizes, low, high, color=color, alpha=0.15, lw=0)


def _set_size_axis(ax: Any) -> None:
    """Set the logarithmic axis for the number of rows, and draw horizontal grid lines instead of a frame."""
    ax.set_xscale("log")
    ax.set_xticks([30, 100, 300, 1000, 5000], ["30", "100", "300", "1,000", "5,000"])
    ax.minorticks_off()
    ax.set_xlabel("rows", fontsize=9)
    ax.grid(axis="y", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    remove_frame(ax)
