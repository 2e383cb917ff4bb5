"""Does the evidence equal the reference prototype, and its definition where the prototype does not go?"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from tests import reference
from trueodds.kernels.cohort_sums import LEFT_OUT, NOT_OBSERVED, OBSERVED, TILT_GRID, UNKNOWN
from trueodds.monitoring.capital import Alternatives, Capital
from trueodds.monitoring.evidence import EvidenceSums, shock_log_ratio, sum_evidence

MARGIN = float(np.log(1.05))
CENTER = -1.6
ALTERNATIVES = Alternatives(MARGIN, CENTER)


@pytest.fixture(scope="module")
def prototype() -> Any:
    path = reference.path("methods/monitor_proto.py")
    spec = importlib.util.spec_from_file_location("monitor_prototype", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sums_of(
    p: Any, outcome: Any, alternatives: Alternatives = ALTERNATIVES, w: Any = None, shock_sd: float = 0.0
) -> EvidenceSums:
    """The sums of one cohort."""
    key = np.zeros(len(p), dtype=np.int64)
    (sums,) = sum_evidence(
        np.asarray(p, float), np.asarray(outcome, np.uint8), w, key, 1, alternatives, squared_weights=True,
        shock_sd=shock_sd,
    )  # fmt: skip
    return sums


def log_ratios(p: Any, outcome: Any, **settings: Any) -> Any:
    alternatives = settings.get("alternatives", ALTERNATIVES)
    return sums_of(p, outcome, **settings).log_ratios(alternatives, settings.get("shock_sd", 0.0))


PROBABILITIES = {
    "spread": lambda rng: rng.beta(2, 10, 5000),
    "sharp": lambda rng: rng.beta(0.1, 0.1, 3000),
    "rare": lambda rng: rng.beta(0.5, 200, 3000),
    "tied": lambda rng: rng.integers(0, 21, 2000) / 20,
    "extreme": lambda rng: rng.choice([0.0, 1.0, 1e-300, 1e-12, 1 - 2**-53, 0.5], 500),
    "few": lambda rng: rng.random(3),
}


def exact_log_ratio(p: Any, y: Any, tilt: Any, margin: float) -> float:
    """The definition, in logarithms; the slopes of the prototype overflow at p = 1e-300."""
    tilt = np.broadcast_to(tilt, p.shape)
    is_active = (np.abs(tilt) > margin) & (p > 0) & (p < 1)
    p, y, tilt = p[is_active], y[is_active], tilt[is_active]
    bound = np.sign(tilt) * margin
    psi, psi_bound = (np.logaddexp(np.log1p(-p), np.log(p) + t) for t in (tilt, bound))
    return float((y * (tilt - bound) - psi + psi_bound).sum())


@pytest.mark.parametrize("kind", PROBABILITIES)
@pytest.mark.parametrize("margin", [0.0, MARGIN])
def test_the_log_ratios_of_a_cohort_are_those_of_the_prototype(prototype: Any, kind: str, margin: float) -> None:
    rng = np.random.default_rng(3)
    p = PROBABILITIES[kind](rng)
    y = rng.random(len(p)) < p
    got = log_ratios(p, y, alternatives=Alternatives(margin, CENTER))
    gaps = np.array(ALTERNATIVES.gaps)
    expected = prototype.sums(p, y, m=margin, centre=CENTER, gap=gaps, slope=np.array([]))
    assert np.r_[got[:12], got[20:]] == pytest.approx(expected, abs=1e-9)
    with np.errstate(divide="ignore"):
        log_odds = np.log(p) - np.log1p(-p)
    slopes = [(slope - 1, center) for slope in ALTERNATIVES.slopes for center in (0.0, CENTER)]
    for value, (slope, center) in zip(got[12:20], slopes, strict=True):
        assert value == pytest.approx(exact_log_ratio(p, y, slope * (log_odds - center), margin), rel=1e-12, abs=1e-9)


def test_weights_are_exponents_of_the_factors(prototype: Any) -> None:
    rng = np.random.default_rng(4)
    p, w = rng.random(900), rng.random(900)
    y = rng.random(900) < p
    got = log_ratios(p, y, w=w, alternatives=Alternatives(MARGIN, 0.0))
    expected = prototype.sums(p, y, w=w)
    assert np.r_[got[:12], got[12:20:2], got[20:]] == pytest.approx(expected, abs=1e-9)


def test_streams_have_the_evidence_of_the_prototype(prototype: Any) -> None:
    rng = np.random.default_rng(5)
    names = prototype.design(np.array([0.5]), centre=CENTER)[2]
    peer, capital = prototype.Monitor(names), Capital.start(ALTERNATIVES, 1)
    for cohort in range(60):
        p = rng.beta(2, 5, rng.integers(1, 400))
        drift = 0.3 if cohort > 30 else 0.0
        y = rng.random(len(p)) < 1 / (1 + (1 - p) / p * np.exp(-drift))
        expected = peer.step(prototype.sums(p, y, centre=CENTER)[None])[0]
        capital = capital.judge(log_ratios(p, y)[None], ALTERNATIVES)
        assert capital.log_evidence(ALTERNATIVES)[0] == pytest.approx(expected, abs=1e-9)
    assert expected > np.log(20)  # the stream has evidence to speak of


def test_a_cohort_without_rows_changes_no_evidence() -> None:
    rng = np.random.default_rng(6)
    p = rng.random(500)
    capital = Capital.start(ALTERNATIVES, 1).judge(log_ratios(p, rng.random(500) < p)[None], ALTERNATIVES)
    before = capital.log_evidence(ALTERNATIVES)[0]
    empty = np.zeros(ALTERNATIVES.size)
    assert capital.judge(empty[None], ALTERNATIVES).log_evidence(ALTERNATIVES)[0] == pytest.approx(before, abs=1e-12)
    # Capital that starts after t cohorts without rows is worth as much as at the beginning.
    late = Capital.start(ALTERNATIVES, 1)
    for _ in range(7):
        late = late.judge(empty[None], ALTERNATIVES)
    assert late.log_values == pytest.approx(Capital.start(ALTERNATIVES, 1, t=7).log_values, abs=1e-12)
    assert late.log_evidence(ALTERNATIVES)[0] == pytest.approx(0.0, abs=1e-12)


def test_an_unknown_outcome_is_the_worse_one_for_every_alternative() -> None:
    p = np.array([0.3, 0.02, 0.95])
    worse = [np.minimum(*(log_ratios([x], [outcome]) for outcome in (NOT_OBSERVED, OBSERVED))) for x in p]
    assert log_ratios(p, [UNKNOWN] * 3) == pytest.approx(np.sum(worse, axis=0), abs=1e-12)


def test_rows_that_are_left_out_and_certain_rows_have_no_evidence() -> None:
    assert log_ratios([0.3, 0.0, 1.0], [LEFT_OUT, NOT_OBSERVED, OBSERVED]) == pytest.approx(0.0)
    sums = sums_of([0.0, 0.0, 1.0, 1.0, 1.0], [OBSERVED, NOT_OBSERVED, NOT_OBSERVED, OBSERVED, UNKNOWN])
    assert sums.impossible == 2
    assert sums.totals.tolist() == [4, 2, 2, 0, 1, 1, 1]
    assert sums.cell_rows[[0, -1]].tolist() == [2, 3]


@pytest.mark.parametrize("margin", [0.0, MARGIN])
@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-3, 0.0101, 0.3, 0.5, 0.97, 1 - 2**-53, 1.0])
def test_no_alternative_has_a_mean_factor_above_one_within_the_margin(p: float, margin: float) -> None:
    alternatives = Alternatives(margin, CENTER)
    factors = [np.exp(log_ratios([p], [outcome], alternatives=alternatives)) for outcome in (0, 1)]
    for tilt in (-margin, 0.0, margin):
        truth = p * np.exp(tilt) / (1 - p + p * np.exp(tilt))
        assert ((1 - truth) * factors[0] + truth * factors[1]).max() <= 1 + 1e-12


@pytest.mark.slow
def test_the_sums_of_parts_add_up() -> None:
    rng = np.random.default_rng(7)
    p = rng.beta(2, 5, 40_000)
    y = (rng.random(40_000) < p).astype(np.uint8)
    parts = [sums_of(p[part], y[part], shock_sd=0.1) for part in (slice(0, 13_000), slice(13_000, None))]
    whole, added = sums_of(p, y, shock_sd=0.1), parts[0] + parts[1]
    for name in ("cells", "slopes", "certain", "tilted"):
        assert getattr(added, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=1e-9), name


def test_the_ratio_with_a_shock_is_that_of_the_prototype_and_of_a_plain_integral(prototype: Any) -> None:
    rng = np.random.default_rng(8)
    p = rng.beta(2, 5, 2000)
    y = rng.random(2000) < 1 / (1 + (1 - p) / p * np.exp(-0.2))
    sums = sums_of(p, y, shock_sd=0.1)
    got = sums.log_ratios(ALTERNATIVES, 0.1)
    assert sums.tilted is not None
    nodes = np.linspace(-2, 2, 2001)
    likelihood = y.sum() * nodes - np.log1p(p[:, None] * np.expm1(nodes)).sum(axis=0)
    for j, tilt in enumerate(ALTERNATIVES.tilts):
        expected = prototype.lse(likelihood - (nodes - tilt) ** 2 / 0.02) - prototype.lse(
            likelihood - (nodes - np.sign(tilt) * MARGIN) ** 2 / 0.02
        )
        assert got[j] == pytest.approx(expected, abs=1e-6)
    assert not got[12:20].any()  # slopes are not valid


def test_a_shock_bounds_the_evidence_of_a_cohort_of_millions_of_rows() -> None:
    """With n → ∞ rows the tilt δ of the events is known: exp(−(δ − t)²/(2s²)) / exp(−(δ − m)²/(2s²))."""
    psi, sd = np.log1p(0.3 * np.expm1(TILT_GRID)), 0.1
    for rate in (0.29, 0.3, 0.32, 0.4):
        tilt = np.log(rate / (1 - rate)) - np.log(0.3 / 0.7)
        bound = np.sign(ALTERNATIVES.tilts) * MARGIN
        limit = ((tilt - bound) ** 2 - (tilt - ALTERNATIVES.tilts) ** 2) / (2 * sd**2)
        ratios = [shock_log_ratio(n * rate, 0.0, n * psi, ALTERNATIVES.tilts, MARGIN, sd) for n in (1e5, 1e7)]
        assert ratios[1] == pytest.approx(limit, rel=1e-3, abs=1e-3)
        assert (ratios[0] <= (tilt - bound) ** 2 / (2 * sd**2) + 1e-6).all()
