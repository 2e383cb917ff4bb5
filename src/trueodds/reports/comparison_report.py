"""Report a comparison of models as an HTML page: compute the measures and diagrams of each model, and render them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trueodds
from trueodds.api.arguments import resolve_data
from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.core import json_files
from trueodds.core.errors import InputError, describe
from trueodds.core.results import Estimate, is_score
from trueodds.core.versions import program_versions
from trueodds.data.predictions import Predictions
from trueodds.io.models import is_pair
from trueodds.reports.provenance import fingerprint_rows
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking
from trueodds.tallies.tally import Tally

MAIN_MEASURES = ("ece", "brier", "log_loss")  # estimators whose value the page has for every model


def comparison_page(result: Comparison | Ranking, models: Any, path: str | Path | None = None) -> str:
    """Return a comparison of models as one self-contained HTML page, as `Comparison.to_html` documents it.

    The measures and diagrams of the page have the level, the number of bins, the weights and the seed of the result,
    and the calibration errors its lens. The measure that was compared is not computed again.

    >>> import trueodds as to
    >>> models = {"a": ([0, 1] * 50, [0.4, 0.6] * 50), "b": ([0, 1] * 50, [0.1, 0.9] * 50)}
    >>> html = comparison_page(to.compare(models["a"], models["b"], names=["a", "b"]), models)
    >>> html.startswith("<!doctype html>")
    True
    """
    from trueodds.reports.html.comparison_page import render_comparison, verdict_of_models

    rows_of_models = _resolve_models(result, models)
    entries = []
    for name, rows in rows_of_models.items():
        measures = [_measure_model(result, name, rows, estimator) for estimator in MAIN_MEASURES]
        entries.append(
            {
                "name": name,
                "kind": rows.kind,
                "k": rows.k,
                "fingerprint": None if isinstance(rows, Tally) else fingerprint_rows(rows),
                "measures": [estimate.to_dict() | {"value": estimate.value} for estimate in measures],
                "diagram": draw(rows, "reliability", **_diagram_settings(result)).to_dict(),
            }
        )
    facts = {
        **result.to_dict(),
        "models": {name: estimate.to_dict() | {"value": estimate.value} for name, estimate in result.models.items()},
        "sentence": verdict_of_models(result),
        "version": trueodds.__version__,
        "versions": program_versions(),
    }
    if isinstance(result, Ranking):
        facts["pairs"] = [pair.pair() | {"difference": pair.difference} for pair in result.pairs]
    else:
        facts["difference"] = result.difference
    text = render_comparison(facts, entries)
    if path is not None:
        json_files.write_text(path, text, "TO703")
    return text


def _resolve_models(result: Comparison | Ranking, models: Any) -> dict[str, Predictions | Tally]:
    """Return the rows of the compared models by name; raise TO205 for other models or numbers of rows."""
    names = list(result.models)
    fix = f"Pass the data that were compared, as {{{', '.join(f'{name!r}: …' for name in names)}}}."
    if isinstance(models, (list, tuple)) and not is_pair(models) and len(models) == len(names):
        models = dict(zip(names, models, strict=True))
    if not isinstance(models, Mapping) or set(map(str, models)) != set(names):
        got = ", ".join(map(str, models)) if isinstance(models, Mapping) else describe(models)
        raise InputError("TO205", "The page needs the models of this comparison.", got, fix)
    by_name = {str(name): model for name, model in models.items()}
    rows_of_models = {name: resolve_data(by_name[name], None, _weight_kind(result)) for name in names}
    for name, rows in rows_of_models.items():
        if rows.n != result.models[name].n:
            got = f"{name}: {rows.n:,} rows instead of {result.models[name].n:,}"
            raise InputError("TO205", "The page needs the models of this comparison.", got, fix)
    return rows_of_models


def _measure_model(result: Comparison | Ranking, name: str, rows: Predictions | Tally, estimator: str) -> Estimate:
    """Return a measure of a model, computed with the settings of the result unless the result contains it."""
    if estimator == result.estimator:
        return result.models[name]
    settings: dict[str, Any] = {"lens": _lens(result, of_score=is_score(estimator))}
    if estimator == "ece":
        settings |= _bin_settings(result)
    return measure(
        rows,
        estimator,
        level=_level(result),
        resamples=result.settings.get("resamples"),
        weight_kind=_weight_kind(result),
        rng=_seed(result),
        **settings,
    )


def _diagram_settings(result: Comparison | Ranking) -> dict[str, Any]:
    """Return the settings of the diagrams, which have the bins of the calibration error that the page shows."""
    scheme = result.settings.get("partition", "") if result.estimator == "ece" else ""
    partition = {"partition": "equal-mass"} if str(scheme).startswith("equal-mass ") else {}
    lens, weight_kind = _lens(result, of_score=False), _weight_kind(result)
    return {"lens": lens, "weight_kind": weight_kind, "rng": _seed(result), **partition, **_bin_settings(result)}


def _lens(result: Comparison | Ranking, *, of_score: bool) -> str | None:
    """Return the lens of the result for a measure of the same kind, score or error; None for the default lens."""
    is_same_kind = of_score == is_score(result.estimator)
    return result.lens if is_same_kind and result.lens != "canonical" else None


def _bin_settings(result: Comparison | Ranking) -> dict[str, Any]:
    """Return number and closed side of the bins of the result; empty if it has no bins of a given number.

    >>> from types import SimpleNamespace
    >>> _bin_settings(SimpleNamespace(settings={"partition": "equal-mass 8, left-closed"}))
    {'bins': 8, 'closed': 'left'}
    """
    match = re.fullmatch(r"(?:uniform|equal-mass) (\d+)(, left-closed)?", str(result.settings.get("partition")))
    if match is None:
        return {}
    return {"bins": int(match[1])} | ({"closed": "left"} if match[2] else {})


def _level(result: Comparison | Ranking) -> float:
    """Return the confidence level of the result."""
    return result.level if isinstance(result, Ranking) else float(result.settings.get("level", 0.95))


def _weight_kind(result: Comparison | Ranking) -> str:
    return str(result.settings.get("weight_kind", "importance"))


def _seed(result: Comparison | Ranking) -> int:
    """Return the seed of the result; 0 if it had a random generator."""
    seed = result.settings.get("seed", 0)
    return seed if isinstance(seed, int) else 0
