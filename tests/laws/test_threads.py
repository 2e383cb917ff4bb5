"""Results do not depend on the number of threads of the linear algebra, which OpenBLAS starts from 10,000 rows on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import trueodds as to
from trueodds import InputError, Predictions
from trueodds.calibrators import CALIBRATORS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

pytestmark = pytest.mark.slow
N_ROWS = 12_000


def rows(k: int) -> Predictions:
    rng = np.random.default_rng(k)
    P = rng.dirichlet(np.ones(k), N_ROWS)
    y = (P.cumsum(axis=1) > rng.random((N_ROWS, 1))).argmax(axis=1)
    return Predictions(y, P if k > 2 else P[:, 1], weight=rng.uniform(0.5, 1.5, N_ROWS))


DATA = {"two classes": rows(2), "three classes": rows(3)}


def differs(compute: Callable[[], Any]) -> str:
    """How the numbers differ between one thread and four; nothing if the data are refused."""
    found = []
    for threads in (1, 4):
        with threadpool_limits(threads, "blas"):
            try:
                found.append(compute())
            except InputError:
                return ""
    same = all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(*found, strict=True))
    return "" if same else f"{found[0]} and {found[1]}"


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimate_has_the_same_bits(name: str, kind: str) -> None:
    assert not differs(lambda: [float(to.measure(DATA[kind], name, interval=None).value)])


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", TESTS.names())
def test_a_test_has_the_same_bits(name: str, kind: str) -> None:
    def compute() -> list[float]:
        result = to.test(DATA[kind], name, seed=0)
        return [float(result.statistic), float(result.pvalue), float(result.effect)]

    assert not differs(compute)


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_a_calibrator_has_the_same_bits(name: str, kind: str) -> None:
    P = DATA[kind].P[:50]
    assert not differs(lambda: to.fit(DATA[kind], name).predict_proba(P).ravel().tolist())
