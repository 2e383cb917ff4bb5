"""The pages under test: small audits of every kind of data that the report shows differently, and a comparison."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

import trueodds as to
from trueodds.core import versions
from trueodds.reports.html.comparison_page import comparison_page

RESAMPLES = 39  # the fewest with which a test can be significant at its share of 5 %

RIGHT_TO_LEFT = ("قطة صغيرة", "חתול גדול", "كلب (2)", "ציפור")  # Arabic and Hebrew, with a digit and brackets
EAST_ASIAN = ("猫", "犬と一緒に散歩する人", "강아지")  # Chinese characters, kana, Hangul
LONG = "a class whose name is a whole sentence, as in an ontology of diseases or products"


def predictions(
    k: int, n: int, *, classes: Sequence[str] | None = None, sharpness: float = 0.4, seed: int = 0, votes: int = 0
) -> to.Predictions:
    """Overconfident predictions of k classes for n rows in two groups, with labels or with votes."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, sharpness), n)
    true = P**0.6 / (P**0.6).sum(axis=1, keepdims=True)
    group = {"site": np.where(rng.random(n) < 0.4, "north", "south")}
    if votes:
        return to.Predictions(rng.multinomial(votes, true), P, group=group, classes=classes)
    # An outcome is where the cumulated probability passes a uniform draw; at the end it may round to less than 1.
    y = np.minimum((true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    names = None if classes is None else np.array(classes)
    return to.Predictions(y if names is None else names[y], P, group=group if k == 3 else None, classes=classes)


def binary() -> to.Predictions:
    """Two classes, which have no table of classes."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 600)
    return to.Predictions((rng.random(600) < p**1.5).astype(int), p)


MAKERS: dict[str, Callable[[], to.Predictions]] = {
    "binary": binary,
    "ten": lambda: predictions(10, 600),
    "votes": lambda: predictions(3, 300, classes=["cat", LONG, "dog"], votes=7),
    "four": lambda: predictions(4, 500, classes=["ant", "bee", "cat", "dog"]),
    "many": lambda: predictions(200, 200),  # more rows than classes would only make the recalibration slow
    "right-to-left": lambda: predictions(4, 400, classes=RIGHT_TO_LEFT),
    "East Asian": lambda: predictions(3, 300, classes=EAST_ASIAN),
}
COMPARISON = "comparison"
NAMES = (*MAKERS, COMPARISON)


def write_comparison(path: Path) -> None:
    """Compare three models of the same rows, of which one has a name from right to left."""
    sharpened = {"model A": 1.0, "a model with a longer name": 0.6, RIGHT_TO_LEFT[2]: 1.6}
    rows = predictions(5, 400)
    models = {}
    for name, exponent in sharpened.items():
        P = np.asarray(rows.P) ** exponent
        models[name] = to.Predictions(rows.y, P / P.sum(axis=1, keepdims=True))
    result = to.compare(models, resamples=200)
    comparison_page(result, models, path)


@cache
def write_page(name: str, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """Write the page of that name once; return its path and the warnings about characters missing in the pictures.

    It names the same commit always, whose digits would otherwise break the lines at other places.
    """
    path = folder / f"{name.replace(' ', '-')}.html"
    named = versions.program_versions() | {"commit": "0123456789" * 4}
    with warnings.catch_warnings(record=True) as caught, patch.object(versions, "_read_versions", lambda: named):
        warnings.filterwarnings("always", message="Glyph .* missing from font")
        if name == COMPARISON:
            write_comparison(path)
        else:
            to.audit(MAKERS[name](), resamples=RESAMPLES, progress=False).to_html(path)
    return path, tuple(str(warning.message) for warning in caught)
