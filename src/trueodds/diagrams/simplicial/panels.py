"""What is said of each triangle or tetrahedron as a whole?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.diagrams.binned.bins import Columns, stacked
from trueodds.diagrams.drawing import layout
from trueodds.diagrams.simplicial import shade
from trueodds.diagrams.simplicial.arrows import Arrows
from trueodds.diagrams.simplicial.cell_tests import VOTES
from trueodds.diagrams.simplicial.wording import finding


def panels(arrows: Sequence[Arrows], tables: Sequence[Columns]) -> Columns:
    """One row per body; the scale of shades is shared, so that panels can be compared."""
    low, high, logarithmic = shade.scale_of(np.concatenate([table["share"] for table in tables[: layout.PANELS]]))
    rows: list[dict[str, Any]] = []
    for body, table in zip(arrows, tables, strict=True):
        beyond, count = int(table["beyond"].sum()), len(table["beyond"])
        text = finding(table, body.corners)
        rows.append(
            {
                "view": body.view.name,
                "title": body.title,
                "aside": f"{beyond} of {count} beyond chance",
                "finding": f"Strongest evidence: {body.title}. {text}" if len(arrows) > 1 and not rows else text,
                **{f"corner_{k}": name for k, name in enumerate(body.corners)},
                "n": int(table["n"].sum()),
                "weight": float(table["weight"].sum()),
                "error": body.error,
                "cells": count,
                "cells_beyond": beyond,
                "smallest_pvalue": float(table["pvalue"].min()),
                "votes": bool((table["law"] == VOTES).any()),
                "share_low": low,
                "share_high": high,
                "share_log": logarithmic,
            }
        )
    words = ("view", "title", "aside", "finding", "corner_0", "corner_1", "corner_2", "corner_3")
    return stacked([{k: np.array([r[k] for r in rows], dtype=object if k in words else None) for k in rows[0]}])
