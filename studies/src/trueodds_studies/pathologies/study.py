"""What calibration errors detect and miss, on toy data sets of at most 60 rows, compared with published numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trueodds.core.progress import Progress
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import StudyResult, make_folder
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
)
from trueodds_studies.pathologies.toy import Toy, draw_toys
from trueodds_studies.pathologies.votes_toy import votes_toy

LEGEND = """published: value in the paper, in figures or in words (calibrated is an error of 0); empty if the paper
states none, or only in a figure. ours: value computed by the library for the same rows. The data sets are small, so
that every number can be calculated by hand, except the noise floors and the p-value, which are based on 999 sets of
drawn labels."""


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
    >>> [row["ours"] for row in finding.rows if row["quantity"] == "error: canonical"]
    [0.1]
    """
    folder = make_folder(out)
    toys: list[Toy] = []
    toy_functions = make_toys(rng)
    for n_done, toy_function in enumerate(toy_functions, 1):
        toys.append(toy_function())
        if progress:
            progress(n_done / len(toy_functions), toys[-1].name)
    rows = tuple(row for toy in toys for row in toy.rows)
    also = tuple(table for toy in toys for table in toy.tables)
    finding = StudyResult("pathologies", summarize(rows), rows, {"quick": quick, "seed": rng}, LEGEND, also)
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:
            draw_toys([toy.panel for toy in toys], folder / "pathologies.svg")
    return finding


def make_toys(seed: int) -> tuple[Callable[[], Toy], ...]:
    """Functions that compute the toys, in the order of the documentation page; `seed` is for the noise floors."""
    return (
        partial(nine_samples_toy, seed),
        majority_toy,
        coarsened_classifier_toy,
        partial(more_bins_toy, seed),
        partial(adaptive_bins_toy, seed),
        other_classes_toy,
        six_predictions_toy,
        votes_toy,
    )


def summarize(rows: tuple[Row, ...]) -> str:
    """In words, how many published numbers agree with ours, and which do not."""
    printed = [row for row in rows if row["published"] is not None]
    differing = [row for row in printed if row["published"] != row["ours"]]
    exceptions = "; ".join(
        f"{row['example']}, {row['quantity']}: {row['published']:g} published, {row['ours']:.6g} ours"
        for row in differing
    )
    agree = f"{len(printed) - len(differing)} of {len(printed)} published numbers agree exactly"
    return f"{agree}{f'; exceptions: {exceptions}' if differing else ''}."
