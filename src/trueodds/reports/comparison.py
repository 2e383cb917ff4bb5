"""Report a comparison of models as one HTML page: the verdict, their diagrams and measures, and all differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trueodds
from trueodds.api.collect_or_tally import resolve_data
from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.core import json_files
from trueodds.core.comparison_results import Comparison, Ranking
from trueodds.reports.provenance import fingerprint_rows, program_versions
from trueodds.tallies.tally import Tally

MAIN_MEASURES = ("ece", "brier", "log_loss")  # of every model on the page


def comparison_page(
    result: Comparison | Ranking,
    models: Mapping[str, Any],
    path: str | Path | None = None,
    *,
    weight_kind: str = "importance",
    rng: int = 0,
) -> str:
    """Return a comparison of models as one self-contained HTML page.

    Parameters
    ----------
    result : Comparison or Ranking
        What `compare` returned for the models.
    models : mapping of str to data
        The predictions of each model by its name, in whatever form `compare` accepts.
    path : str or Path, optional
        File to which the page is written.
    weight_kind : {"importance", "frequency"}, default="importance"
        Whether weights are importance weights or numbers of rows.
    rng : int, default=0
        Seed of the measures.

    Returns
    -------
    str
        The HTML text. The page loads nothing and sends nothing.

    Raises
    ------
    InputError
        TO702 if jinja2 is not installed, TO703 if the file cannot be written.

    Examples
    --------
    >>> import trueodds as to
    >>> models = {"a": ([0, 1] * 50, [0.4, 0.6] * 50), "b": ([0, 1] * 50, [0.1, 0.9] * 50)}
    >>> html = comparison_page(to.compare(models["a"], models["b"], names=["a", "b"]), models)
    >>> html.startswith("<!doctype html>")
    True
    """
    from trueodds.reports.html.comparison import render_comparison

    entries = []
    for name, data in models.items():
        rows = resolve_data(data, None, weight_kind)
        measures = [measure(rows, estimator, weight_kind=weight_kind, rng=rng) for estimator in MAIN_MEASURES]
        entries.append(
            {
                "name": name,
                "kind": rows.kind,
                "k": rows.k,
                "fingerprint": None if isinstance(rows, Tally) else fingerprint_rows(rows),
                "measures": [estimate.to_dict() for estimate in measures],
                "diagram": draw(rows, "reliability").to_dict(),
            }
        )
    facts = {**result.to_dict(), "version": trueodds.__version__, "versions": program_versions(), "seed": rng}
    text = render_comparison(facts, entries)
    if path is not None:
        json_files.write_text(path, text, "TO703")
    return text
