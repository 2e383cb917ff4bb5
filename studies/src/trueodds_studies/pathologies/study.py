"""What the expected calibration error detects and misses, on toy data sets of at most 60 rows."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trueodds.core.progress import Progress
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.pathologies import toy as figures
from trueodds_studies.pathologies.confidence_toys import (
    adaptive_bins_toy,
    majority_toy,
    more_bins_toy,
    nine_samples_toy,
)
from trueodds_studies.pathologies.multiclass_toys import (
    coarsened_classifier_toy,
    other_classes_toy,
    six_predictions_toy,
    votes_toy,
)
from trueodds_studies.pathologies.toy import Toy

LEGEND = """printed: value in the paper, in figures or in words (calibrated is an error of 0); empty if the paper states
none, or only in a figure. ours: value computed by the library for the same rows. The data sets are small, so that
every number can be calculated by hand, except the noise floors and the p-value, which are based on 999 sets of drawn
labels."""


def pathologies(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    progress: Progress | None = None,
) -> StudyResult:
    """What the expected calibration error detects and misses, on data sets of at most 60 rows.

    ECE step by step; an uninformative model with ECE 0; calibrated models of different quality; dependence on the
    bins; equal confidence with different vectors; six predictions whose error only the canonical lens detects;
    predictions that agree with annotators by one measure and not by another. A table of all values, one or two per toy,
    and with a folder a figure, `pathologies.svg`. `quick` has no effect. Sources: Pavlovic (2025), sections 2
    and 3; Vaicenavicius et al. (2019), introduction, Proposition 1 and Table 1.

    >>> finding = pathologies()
    >>> [row["ours"] for row in finding.rows if row["what"] == "error: canonical"]
    [0.1]
    """
    where, toys, every = make_folder(out), list[Toy](), make_toys(rng)
    for done, toy in enumerate(every, 1):
        toys.append(toy())
        if progress:
            progress(done / len(every), toys[-1].name)
    rows = tuple(row for toy in toys for row in toy.rows)
    also = tuple(table for toy in toys for table in toy.tables)
    finding = StudyResult("pathologies", summarize(rows), rows, {"quick": quick, "seed": rng}, LEGEND, also)
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:
            figures.draw_toys([toy.panel for toy in toys], where / "pathologies.svg")
    return finding


def make_toys(seed: int) -> tuple[Callable[[], Toy], ...]:
    """The toys in the order of the page; those with noise floors draw labels."""
    of_nine = [partial(toy, seed) for toy in (nine_samples_toy, more_bins_toy, adaptive_bins_toy)]
    return (
        of_nine[0],
        majority_toy,
        coarsened_classifier_toy,
        *of_nine[1:],
        other_classes_toy,
        six_predictions_toy,
        votes_toy,
    )


def summarize(rows: tuple[Row, ...]) -> str:
    """Summary of how many published numbers agree with ours."""
    printed = [row for row in rows if row["printed"] is not None]
    differing = [row for row in printed if row["printed"] != row["ours"]]
    named = "; ".join(
        f"{row['toy']}, {row['what']}: {row['printed']:g} published, {row['ours']:.6g} ours" for row in differing
    )
    agree = f"{len(printed) - len(differing)} of {len(printed)} published numbers agree exactly"
    return f"{agree}{f'; exceptions: {named}' if differing else ''}."
