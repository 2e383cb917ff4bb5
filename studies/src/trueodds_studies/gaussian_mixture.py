"""Does a binned calibration error say too much or too little, and how fast does that pass? A world whose truth is known."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.mixture import estimate_tables, figures, rates
from trueodds_studies.mixture.simulation import Cell, Plan, measure_cell
from trueodds_studies.mixture.truth import MODELS, known
from trueodds_studies.resumable_runs import Progress, rows_of

QUICK = Plan(sizes=(100, 1000, 10_000), sets=100, tree_sets=10)

ESTIMATES = """Y = −1 or 1 equally often, x ~ N(Y, 1). perfect: says σ(−2x) for Y = −1, the truth; constant: says 1/2; uncalibrated: says σ(1 + x).
{sets:,} data sets, trees {tree_sets:,}, less where n is large, the same for all. mean, sd: of the estimates (total variation); above: share of them above the truth; limit:
what they come to where the bins stay and rows never run out, by quadrature. tree: median-variance, at most so many leaves of ten rows or more."""
BOUND = """Uncalibrated model. limit: what the estimate comes to; hidden: truth less limit; both by quadrature. squared: of the
squared Euclidean distance. mean at: mean estimate of so many rows, with its standard error (chance that the estimate shares with an
unbiased mean is taken off). crossing: the bin in which what is said crosses what comes. Equal-mass and tree: as they cut the law of the predictions itself."""
RATES = """Least squares of logarithms: value ∝ n^(per n) bins^(per bins), with standard errors. chance adds: mean estimate less limit, cells of {least} rows a bin or
more (uncalibrated: and bins ≥ 2 n^(1/3), narrower than the stretch that chance blurs); bins hide: truth less limit, 2 to {most} bins, by quadrature;
octaves: the means over 2 and 3 bins, 4 to 7, and so on; variance: of the estimates. Cells of
one n share their data sets, and a tree keeps the leaf of the crossing over many numbers of leaves, so that some errors are too small. expected: by the reasoning of docs/studies/gaussian_mixture.md."""
BIN_COUNT_RULES = """⌈n^a⌉ bins; a = 0: {fixed} bins. bias per n, rmse per n: exponents over n, least squares of logarithms of |bias| and of the root mean squared error, with
standard errors. expected: −(1 − a)/2 where the model is calibrated, else −min(2a, 1 − a). bins, bias, rmse: at the greatest n. Of few rows a tree has fewer
leaves than are asked for, as each holds ten."""


def gaussian_mixture(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Three logistic models of a Gaussian mixture, their true error by quadrature, and estimates of it.

    Tables: estimates over rows and bins; the limit of fixed bins, strictly below the truth; exponents of bias and
    variance; rules for the number of bins. Pictures: histograms of the estimates, reliability diagrams with the true
    deviation, rates. `methods` are models. Source: Vaicenavicius et al. (2019), section 5.1 and theorem 2.

    >>> small = Plan(sizes=(100, 300, 1000), bins=(5, 15), drawn_bins=(5,), sets=20, tree_sets=5)
    >>> gaussian_mixture(methods=["perfect"], plan=small).rows[0]["uniform above"]
    1.0
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    models = [known(name).name for name in methods or MODELS]
    cells = rows_of(
        "gaussian_mixture", [Cell(name, n) for name in models for n in plan.sizes], measure_cell, plan, where, progress
    )
    every = estimate_tables.flat(cells)
    also = _also(every, plan)
    legend = ESTIMATES.format(sets=plan.sets, tree_sets=plan.tree_sets)
    rows = estimate_tables.estimates(every, plan)
    finding = Finding("gaussian_mixture", estimate_tables.sentence(every, plan), rows, plan.__dict__, legend, also)
    if where is not None:
        finding.save(where)
        Finding("gaussian_mixture.all", finding.sentence, every, plan.__dict__, legend).save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw(cells, every, models, plan, where)
    return finding


def draw(
    cells: Sequence[Mapping[str, Any]],
    every: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    plan: Plan,
    where: Path,
) -> None:
    """Every picture of the study."""
    for name in models:
        for kind in ("uniform", "tree") if known(name).second else ("uniform",):
            figures.histograms(cells, name, kind, plan, where / f"gaussian_mixture.{name}.{kind}.svg")
    figures.diagrams(models, plan.seed, where / "gaussian_mixture.diagrams.svg")
    figures.speeds(every, where / "gaussian_mixture.rates.svg")


def _also(every: Sequence[Mapping[str, Any]], plan: Plan) -> tuple[Finding, ...]:
    """The further tables."""
    settings = plan.__dict__
    bound = estimate_tables.bound(every, plan)
    exponents = rates.exponents(every)
    legend = RATES.format(least=rates.MIN_ROWS_PER_BIN, most=rates.MAX_BINS)
    findings = [
        Finding("gaussian_mixture.bound", estimate_tables.of_the_bound(bound), bound, settings, BOUND),
        Finding("gaussian_mixture.rates", estimate_tables.of_rates(exponents), exponents, settings, legend),
    ]
    ruled = rates.bin_count_rules(every, plan)
    if ruled:
        words = BIN_COUNT_RULES.format(fixed=rates.FIXED)
        findings.append(Finding("gaussian_mixture.rules", estimate_tables.of_rules(ruled), ruled, settings, words))
    return tuple(findings)
