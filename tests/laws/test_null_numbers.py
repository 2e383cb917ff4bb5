"""Every number of a result may be null, because it is undefined or infinite: text and page are written nevertheless."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.reports.audit import Audit
from trueodds.reports.html.audit_page import render_html

RNG = np.random.default_rng(0)
N = 60
SETTINGS = ("alpha", "level")  # in (0, 1) in every result


def predictions(kind: str) -> to.Predictions:
    """Predictions of a kind, with groups if it has any."""
    groups = np.arange(N) % 3
    if kind == "multilabel":
        return to.Predictions.from_multilabel(RNG.integers(0, 2, (N, 2)), RNG.random((N, 2)), group=groups)
    if kind == "binary":
        return to.Predictions(RNG.integers(0, 2, N), RNG.random(N), group=groups)
    P = RNG.dirichlet([1, 1, 1], N)
    if kind == "votes":
        return to.Predictions(RNG.integers(1, 4, (N, 3)), P, group=groups)
    return to.Predictions(RNG.integers(0, 3, N), P, group=groups)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields with a number that is not a setting, of at most two items of each list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*path, key)) if key not in SETTINGS else ()
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:2]):
            yield from numbers(item, (*path, i))
    elif isinstance(value, float):
        yield path


def with_null(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy of the value with null in one field."""
    if not path:
        return None
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: with_null(value[key], tuple(rest))}
    return [with_null(item, tuple(rest)) if i == key else item for i, item in enumerate(value)]


@pytest.mark.slow
def test_a_number_that_is_null_stops_neither_text_nor_page() -> None:
    seen: set[tuple[Any, ...]] = set()  # what several kinds have in common is tried in the first of them
    for kind in ("classes", "binary", "votes", "multilabel"):
        facts = to.audit(predictions(kind), resamples=39).to_dict()
        paths = [path for path in numbers(facts) if path not in seen]
        assert len(paths) > 5
        seen.update(paths)
        for path in paths:
            changed = with_null(facts, path)
            assert str(Audit(changed, ())), path
            assert render_html(changed), path
    assert len(seen) > 100


def degenerate(name: str, k: int, n: int) -> to.Predictions:
    """Predictions whose variances are 0, or whose groups are too small to be tested."""
    y = np.arange(n) % k
    right, wrong, constant = np.eye(k)[y], np.eye(k)[(y + 1) % k], np.full((n, k), 1 / k)
    pairs = (np.arange(n) % 2).astype(str)
    if name == "right":
        return to.Predictions(y, right, group=pairs)
    if name == "wrong":
        return to.Predictions(y, wrong, group=pairs)
    if name == "one wrong":
        return to.Predictions(y, np.concatenate([wrong[:1], right[1:]]), group=pairs)
    if name == "constant":
        return to.Predictions(y, constant, group=pairs)
    if name == "one class":
        return to.Predictions(np.zeros(n, dtype=int), constant, group=pairs)
    if name == "one row per group":
        return to.Predictions(y, constant, group=np.arange(n))
    if name == "one row apart":
        return to.Predictions(y, right, group=np.arange(n) == 0)
    return to.Predictions(np.eye(k)[y] * 3, right, group=pairs)  # unanimous votes


DEGENERATE = [
    "right", "wrong", "one wrong", "constant", "one class", "one row per group", "one row apart", "unanimous votes",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_predictions_have_an_audit_as_text_page_and_json(name: str, k: int) -> None:
    for n in (12, 60):
        audit = to.audit(degenerate(name, k, n), resamples=39)
        assert str(audit)
        assert render_html(audit.facts)
        json.dumps(audit.to_dict(), allow_nan=False)
