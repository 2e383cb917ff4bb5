"""What does MCLLO find where one class comes with δ times its odds? Many data sets of one size and one shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import chdtrc, chdtri, chndtr

from trueodds.binning.partition import Uniform
from trueodds.calibrators.likelihood.null_distributions import WITHIN
from trueodds.calibrators.mcllo import MclloMap
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.hypotests.mcllo import statistics
from trueodds.lenses.view import View
from trueodds_studies.rates import clopper_pearson

LEVELS = {"5": 0.05, "1": 0.01}  # per cent, as the columns are named
FORMS = {"lrt": "likelihood-ratio", "score": "score"}
PARAMETERS = ("gamma_1", "tau_1", "gamma_2", "tau_2")  # the third class is the baseline
K = 3
DF = 2 * (K - 1)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Plan(Protocol):
    """What of a plan a cell reads."""

    sets: int
    binned: int  # of them, whose ECE is taken
    seed: int


@dataclass(frozen=True)
class Cell:
    """One shift at one number of rows."""

    n: int
    delta: float

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"delta {self.delta:g} | {self.n}"

    @property
    def truth(self) -> Array:
        """(γ₁, τ₁, γ₂, τ₂): class 1 comes with δ times the odds against class 3 that were said, and nothing else is wrong."""
        return np.array([1.0, np.log(self.delta), 1.0, 0.0])

    def rows(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Predictions from Dirichlet(1, 1, 1), then labels by the inverse distribution function, as one of K."""
        P = rng.dirichlet(np.ones(K), self.n)
        first, two = self.delta * P[:, 0], self.delta * P[:, 0] + P[:, 1]
        u = rng.random(self.n) * (two + P[:, 2])
        y = (first <= u).astype(np.int64) + (two <= u)
        return P, np.eye(K)[y]


def divergence(delta: float, k: int = K) -> float:
    r"""E KL(q ‖ p) in nats, where p ~ Dirichlet(1, …, 1) and q has δ times the odds of the first class.

    Only :math:`p_1 \sim \mathrm{Beta}(1, k - 1)` matters: with :math:`q_1 = \delta p_1 / (1 + (\delta - 1)p_1)`,
    KL is :math:`q_1 \log\delta - \log(1 + (\delta - 1)p_1)`. By Gauss and Legendre's quadrature.

    >>> divergence(1.0), round(divergence(1.25), 6)
    (0.0, 0.004262)
    """
    p = (1 + _NODES) / 2
    grown = 1 + (delta - 1) * p
    density = (k - 1) * (1 - p) ** (k - 2) / 2
    return float(_WEIGHTS @ (density * (delta * p / grown * np.log(delta) - np.log(grown))))


def predicted(n: int, delta: float, level: float) -> tuple[float, float]:
    """The non-centrality 2n E KL(q ‖ p), and how often non-central χ² passes the quantile of the central one.

    >>> ncp, power = predicted(50, 1.0, 0.05)
    >>> ncp, round(power, 10)
    (0.0, 0.05)
    """
    ncp = 2 * n * divergence(delta)
    return ncp, float(1 - chndtr(chdtri(DF, level), DF, ncp))


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Rejections, parameters and ECE of one cell."""
    samples: dict[str, list[Any]] = {name: [] for name in ("lrt", "score", "off", "covers", "before", "after", "new")}
    ece, calibration_map = BinnedError(Uniform(int(np.ceil(np.sqrt(cell.n))))), None
    for repetition in range(plan.sets):
        rng = np.random.default_rng([plan.seed, cell.n, round(1000 * cell.delta), repetition])
        P, Y = cell.rows(rng)
        odds = Odds.of(View(p=P, y=Y), -1, 0.0, "mcllo")
        for name, form in FORMS.items():
            samples[name].append(chdtrc(odds.white.shape[1], statistics(odds, form)[form]))
        errors = odds.mle.theta - cell.truth
        if odds.covariance is not None:
            samples["off"].append(errors)
            samples["covers"].append(np.abs(errors) <= WITHIN * np.sqrt(odds.covariance.diagonal()))
        if repetition >= plan.binned:
            continue
        samples["before"].append(_ece(ece, P, Y))
        samples["after"].append(_ece(ece, odds.fitted_probs, Y))
        if calibration_map is not None:  # these rows are new to the map of the data set before
            samples["new"].append(_ece(ece, calibration_map.apply(P), Y))
        calibration_map = MclloMap(odds.mle.theta[1::2], odds.mle.theta[::2], 2, 1e-12)
    return _row(cell, plan.sets, {name: np.array(values) for name, values in samples.items()})


def _ece(ece: BinnedError, P: Array, Y: Array) -> float:
    """Of the largest probability; ties go to the first class."""
    top = P.argmax(axis=1)
    every = np.arange(len(P))
    return float(ece.value(View(p=P[every, top], y=Y[every, top])))


def _row(cell: Cell, sets: int, samples: Mapping[str, Array]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "n": cell.n,
        "delta": cell.delta,
        "sets": sets,
        "ncp": predicted(cell.n, cell.delta, 0.05)[0],
    }
    for name, level in LEVELS.items():
        for form in FORMS:
            hits = int((samples[form] <= level).sum())
            low, high = clopper_pearson(hits, sets)
            row |= {f"{form}{name}": hits / sets, f"{form}{name}_low": low, f"{form}{name}_high": high}
        row[f"predicted{name}"] = predicted(cell.n, cell.delta, level)[1]
    row["finite"] = len(samples["off"])
    for j, name in enumerate(PARAMETERS if len(samples["off"]) else ()):
        errors, covers = samples["off"][:, j], int(samples["covers"][:, j].sum())
        low, high = clopper_pearson(covers, len(errors))
        row |= {f"bias_{name}": float(errors.mean()), f"sd_{name}": float(errors.std())}
        row |= {f"covers_{name}": covers / len(errors), f"low_{name}": low, f"high_{name}": high}
    for name in ("before", "after", "new"):
        if len(samples[name]):
            quartiles = np.quantile(samples[name], (0.25, 0.5, 0.75)).tolist()
            row |= dict(zip((f"{name}_q1", f"{name}_q2", f"{name}_q3"), quartiles, strict=True))
            row[name] = float(samples[name].mean())
    row["lowered"] = float((samples["after"] < samples["before"]).mean())
    if len(samples["new"]):
        row["lowered_new"] = float((samples["new"] < samples["before"][1:]).mean())
    return row
