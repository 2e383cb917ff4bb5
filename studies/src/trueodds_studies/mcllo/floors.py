"""What does the study of zeros look like? Statistic, slopes and rejections by what stands in for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scipy.special import chdtri

from trueodds_studies.mcllo.axes import panels, save_figure
from trueodds_studies.resumable_runs import Row

CRITICAL = float(chdtri(4, 0.05))


def floors(rows: Sequence[Row], many: Sequence[Row], path: Path) -> None:
    """One forest: likelihood ratio and slopes by stand-in, with its outcomes that had no votes and without; then many."""
    stands = [row["stand-in"] for row in many]
    y = {stand: len(stands) - i for i, stand in enumerate(stands)}
    figure, (ratio, slopes, share) = panels(1, 3, (11, 3.9), sharey=True)
    kinds = list(dict.fromkeys(row["rows"] for row in rows))
    ratio.axvline(CRITICAL, color="#cccccc", lw=1)
    slopes.axvline(1, color="#cccccc", lw=1)
    for kind, color, up in zip(kinds, ("#b5402a", "#2f6da8"), (0.12, -0.12), strict=True):
        own = [row for row in rows if row["rows"] == kind]
        at = [y[row["stand-in"]] + up for row in own]
        ratio.hlines(at, [row["lrt_low"] for row in own], [row["lrt_high"] for row in own], color=color, lw=1.5)
        ratio.plot([row["lrt"] for row in own], at, "o", ms=4, color=color, label=f"one forest, {kind}")
        for name, mark in (("gamma_1", "o"), ("gamma_2", "s")):
            slopes.plot([row[name] for row in own], at, mark, ms=4, color=color, mfc="none" if mark == "s" else color)
    share.axvline(5, color="#cccccc", lw=1)
    for name, color, text, up in (
        ("lrt", "#b5402a", "likelihood ratio by χ²", 0.12),
        ("redrawn", "#555555", "score, redrawn", -0.12),
    ):
        at = [y[row["stand-in"]] + up for row in many]
        share.hlines(
            at,
            [100 * row[f"{name}_low"] for row in many],
            [100 * row[f"{name}_high"] for row in many],
            color=color,
            lw=1.5,
        )
        share.plot([100 * row[name] for row in many], at, "D", ms=4, color=color, label=f"{text}, 99 % limits")
    ratio.set_yticks(list(y.values()), list(y), fontsize=8)
    ratio.set(xscale="log", xlabel="likelihood ratio, over the baselines; line: 5 %", title="one forest")
    slopes.set(xlabel="γ₁ (filled) and γ₂", title="one forest", xlim=(0, None))
    share.set(xlabel="per cent of forests rejected at 5 %", title="many forests", xlim=(-2, 102))
    handles = [handle for ax in (ratio, share) for handle in ax.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)
