"""Bias of binned calibration errors in a Gaussian mixture whose true error is known: tables and figures."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.binning.uniform import Uniform
from trueodds.core.progress import Progress
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.figures import BLUE, RED, make_panels, save_figure
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_range, make_folder
from trueodds_studies.gaussian_mixture import convergence_rates
from trueodds_studies.gaussian_mixture.convergence_rates import (
    MIN_ROWS_PER_BIN,
    binning_biases,
    has_narrow_bins,
    noise_bias,
)
from trueodds_studies.gaussian_mixture.simulation import (
    MODELS,
    PARTITION_KINDS,
    Cell,
    Plan,
    binned_limit,
    binned_limit_at_edges,
    find_model,
    measure_cell,
    population_edges,
    true_error,
)

QUICK = Plan(sizes=(100, 1000, 10_000), drawn_bins=(5, 100), sets=100, tree_sets=10)

ESTIMATES_LEGEND = """Y = −1 or 1 equally often, x ~ N(Y, 1). perfect: predicts σ(−2x) for Y = −1, the true probability;
constant: predicts 1/2; uncalibrated: predicts σ(1 + x). {sets:,} data sets, trees {tree_sets:,}, fewer for large n, the
same for all. mean, sd: of the estimates (total variation); above: share of estimates above the true error; limit: limit
for infinitely many rows with fixed bins, by quadrature. tree: median-variance, with at most this number of leaves of
ten rows or more."""
BOUND_LEGEND = """Uncalibrated model. limit: limit of the estimate for infinitely many rows; difference: true error
minus limit; both by quadrature. squared: for the squared Euclidean distance. mean at: mean estimate for this number
of rows, with its standard error (after subtracting an unbiased mean with correlated noise). crossing: bin in which
the calibration curve crosses the diagonal. Equal-mass and tree: with the edges for the distribution of the
predictions."""
RATES_LEGEND = """Least squares of logarithms: value ∝ n^a bins^b, with the exponents a of n and b of bins and their
standard errors. bias by noise: mean estimate minus limit, cells with {least} rows per bin or more (uncalibrated: and
bins ≥ 2 n^(1/3), narrower than the range in which noise changes the sign); bias by binning: true error minus limit,
2 to {most} bins, by quadrature; octaves: means over 2 and 3 bins, 4 to 7, and so on; variance: of the estimates.
Cells with the same n share their data sets, and a tree keeps the leaf of the crossing for many numbers of leaves, so
some standard errors are too small. expected: as derived in docs/studies/gaussian_mixture.md."""
RULES_LEGEND = """⌈n^a⌉ bins; a = 0: {fixed} bins. bias exponent, rmse exponent: of n, by least squares of logarithms
of |bias| and of the root mean squared error, with standard errors. expected: −(1 − a)/2 if the model is calibrated,
else −min(2a, 1 − a). bins, bias, rmse: at the largest n. With few rows, a tree has fewer leaves than requested,
because each contains at least ten rows."""


def gaussian_mixture(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Three logistic models of a Gaussian mixture, their true error by quadrature, and estimates of it.

    Tables: estimates by rows and bins; the limit for fixed bins, strictly below the true error; exponents of bias and
    variance; rules for the number of bins. Figures: histograms of the estimates, reliability diagrams with the true
    deviation, convergence rates. `methods` are models. Source: Vaicenavicius et al. (2019), section 5.1 and theorem 2.

    >>> small = Plan(sizes=(100, 300, 1000), bins=(5, 15), drawn_bins=(5,), sets=20, tree_sets=5)
    >>> gaussian_mixture(methods=["perfect"], plan=small).rows[0]["uniform above"]
    1.0
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    models = [find_model(name).name for name in methods or MODELS]
    cells = run_cells(
        "gaussian_mixture", [Cell(name, n) for name in models for n in plan.sizes], measure_cell, plan, folder, progress
    )
    estimates = flatten_estimates(cells)
    also = _further_tables(estimates, plan)
    legend = ESTIMATES_LEGEND.format(sets=plan.sets, tree_sets=plan.tree_sets)
    rows = estimate_table(estimates, plan)
    finding = StudyResult("gaussian_mixture", summarize(estimates, plan), rows, plan.__dict__, legend, also)
    if folder is not None:
        finding.save(folder)
        StudyResult("gaussian_mixture.all", finding.sentence, estimates, plan.__dict__, legend).save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_figures(cells, estimates, models, plan, folder)
    return finding


def draw_figures(
    cells: Sequence[Mapping[str, Any]],
    estimates: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    plan: Plan,
    folder: Path,
) -> None:
    """Draw every figure of the study."""
    for name in models:
        for kind in ("uniform", "tree") if find_model(name).slope else ("uniform",):
            draw_histograms(cells, name, kind, plan, folder / f"gaussian_mixture.{name}.{kind}.svg")
    draw_diagrams(models, plan.seed, folder / "gaussian_mixture.diagrams.svg")
    draw_rates(estimates, folder / "gaussian_mixture.rates.svg")


def _further_tables(estimates: Sequence[Mapping[str, Any]], plan: Plan) -> tuple[StudyResult, ...]:
    """The other tables of the study."""
    settings = plan.__dict__
    bound = bound_table(estimates, plan)
    exponents = convergence_rates.fit_exponents(estimates)
    legend = RATES_LEGEND.format(least=convergence_rates.MIN_ROWS_PER_BIN, most=convergence_rates.MAX_BINS)
    findings = [
        StudyResult("gaussian_mixture.bound", summarize_bound(bound), bound, settings, BOUND_LEGEND),
        StudyResult(
            "gaussian_mixture.rates", convergence_rates.summarize_rates(exponents), exponents, settings, legend
        ),
    ]
    rule_rows = convergence_rates.bin_count_rule_table(estimates, plan)
    if rule_rows:
        rules_legend = RULES_LEGEND.format(fixed=convergence_rates.FIXED_BINS)
        findings.append(
            StudyResult(
                "gaussian_mixture.rules",
                convergence_rates.summarize_rules(rule_rows),
                rule_rows,
                settings,
                rules_legend,
            )
        )
    return tuple(findings)


SHOWN_BINS = (1, 2, 3, 5, 10, 15, 20, 40, 100)  # numbers of bins in the table of the bound


def flatten_estimates(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row for each model, number of rows, partition, and number of bins, without single estimates."""
    return tuple(
        {"model": cell["model"], "n": cell["n"]} | {key: value for key, value in row.items() if key != "values"}
        for cell in cells
        for row in cell["estimates"]
    )


def estimate_table(rows: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """One row per model, n and number of bins in the figures: mean, sd and limit of the estimates, and true error.

    The constant model, with a single occupied bin, has one row per n.
    """
    rows_by_key = {(row["model"], row["n"], row["kind"], row["bins"]): row for row in rows}
    table = []
    for name in dict.fromkeys(row["model"] for row in rows):
        is_constant = find_model(name).slope == 0
        for n in (n for n in plan.sizes if n in plan.drawn_sizes):
            for bins in plan.drawn_bins[:1] if is_constant else plan.drawn_bins:
                entry: dict[str, Any] = {"model": name, "n": n, "bins": "any" if is_constant else str(bins)}
                for kind in ("uniform", "tree"):
                    row = rows_by_key[name, n, kind, bins]
                    entry |= {f"{kind} {key}": row[key] for key in ("mean", "sd", "above")}
                    entry[f"{kind} limit"] = binned_limit(find_model(name), kind, bins)
                table.append(entry | {"truth": true_error(find_model(name))})
    return tuple(table)


def bound_table(rows: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """One row per partition and number of bins: limit for infinitely many rows and true error minus limit.

    For total variation and the squared Euclidean distance; in addition the mean estimate for the largest n.
    """
    model = MODELS["uncalibrated"]
    n = plan.sizes[-1]
    rows_by_key = {(row["kind"], row["bins"]): row for row in rows if row["model"] == model.name and row["n"] == n}
    table = []
    for kind in PARTITION_KINDS:
        for bins in SHOWN_BINS:
            tv, square = (binned_limit(model, kind, bins, distance) for distance in ("tv", "sq-euclidean"))
            entry: dict[str, Any] = {"partition": kind, "bins": bins, "limit": tv, "difference": true_error(model) - tv}
            entry |= {"squared limit": square, "squared difference": true_error(model, "sq-euclidean") - square}
            if (kind, bins) in rows_by_key:
                row = rows_by_key[kind, bins]
                entry |= {f"mean at {n}": true_error(model) + row["bias"], "se": row["bias se"]}
            table.append(entry | {"crossing": _bin_around_crossing(population_edges(model, kind, bins))})
    cut = (crossing_point(),)
    tv, square = (binned_limit_at_edges(model, cut, distance) for distance in ("tv", "sq-euclidean"))
    last = {"partition": "an edge at the crossing", "bins": 2, "limit": tv, "difference": true_error(model) - tv}
    last |= {"squared limit": square, "squared difference": true_error(model, "sq-euclidean") - square}
    return (*table, last)


def crossing_point() -> float:
    """The prediction at which the uncalibrated model equals the true probability.

    >>> round(crossing_point(), 4)
    0.6608
    """
    return float(expit(2 / 3))  # 1 + x = −2x at x = −1/3


def _bin_around_crossing(edges: Sequence[float]) -> str:
    """The bin with these inner edges that contains the crossing point, as text."""
    low = max((edge for edge in edges if edge < crossing_point()), default=0.0)
    high = min((edge for edge in edges if edge > crossing_point()), default=1.0)
    return f"({low:.4g}, {high:.4g}]"


def summarize(rows: Sequence[Row], plan: Plan) -> str:
    """In words, the true error of each model, the range of the mean estimates, and their bias."""
    phrases = []
    for name in dict.fromkeys(row["model"] for row in rows):
        truth, model_rows = true_error(find_model(name)), [row for row in rows if row["model"] == name]
        text = (
            f"{name}: the true error is {truth:.5f}, mean estimates are"
            f" {format_range((row['mean'] for row in model_rows), 4)}"
        )
        if truth > 0:
            largest_n = [row for row in model_rows if row["n"] == plan.sizes[-1]]
            high = max(model_rows, key=lambda row: row["bias"])
            low = min(model_rows, key=lambda row: row["bias"])
            text += (
                f", biased by up to {high['bias']:+.4f} ({_format_setting(high)}) and {low['bias']:+.4f}"
                f" ({_format_setting(low)})"
            )
            text += (
                f"; share of estimates above the true error at n = {plan.sizes[-1]:,}:"
                f" {format_range((row['above'] for row in largest_n), 2)}"
            )
        else:
            text += (
                f"; share of estimates above the true error: {format_range((row['above'] for row in model_rows), 2)}"
            )
        phrases.append(text)
    return ". ".join(phrases) + "."


def _format_setting(row: Row) -> str:
    return f"{row['kind']}, {row['bins']} bins, n = {row['n']:,}"


def summarize_bound(rows: Sequence[Row]) -> str:
    """In words, how far the limits are below the true error, and where they are not."""
    strict = [row for row in rows if row["difference"] > 1e-9]
    phrases = [f"{row['bins']}: {row['difference']:.2g}" for row in rows if row["partition"] == "uniform"]
    return (
        f"Of {len(rows)} partitions, {len(strict)} have a limit below the true error"
        f" {true_error(MODELS['uncalibrated']):.5f}. True error minus limit for uniform bins, by their number:"
        f" {', '.join(phrases)}. With an edge at {crossing_point():.4f}, where the model is correct, the difference is"
        f" {abs(rows[-1]['difference']):.1g}, and {rows[-1]['squared difference']:.3f} for the squared distance."
    )


COLORS = {"uniform": BLUE, "equal-mass": "#c79a2b", "tree": "#5a9e5a"}
MARKS = {"uniform": "o", "equal-mass": "s", "tree": "^"}
ABOVE_COLOR, BELOW_COLOR, LINE_COLOR = "#9dbfdf", "#e0a898", "#333333"
DIAGRAM_ROWS = 10_000  # of a reliability diagram, as in the paper


def draw_histograms(cells: Sequence[Row], model: str, kind: str, plan: Plan, path: Path) -> None:
    """Draw histograms of the estimates by number of rows and bins, blue above the true error and red below."""
    sizes = [n for n in plan.sizes if n in plan.drawn_sizes]
    is_constant = find_model(model).slope == 0  # all predictions are equal, so the number of bins does not matter
    bin_counts = plan.drawn_bins[:1] if is_constant else plan.drawn_bins
    estimates = {
        (cell["n"], row["bins"]): row["values"]
        for cell in cells
        if cell["model"] == model
        for row in cell["estimates"]
        if row["kind"] == kind and "values" in row
    }
    truth = true_error(find_model(model))
    figure, axes = make_panels(
        len(sizes),
        len(bin_counts),
        (1 + 2.5 * len(bin_counts), 0.7 + 1.9 * len(sizes)),
        sharex="row",
        sharey="row",
        squeeze=False,
    )
    for down, n in enumerate(sizes):
        all_values = np.concatenate([estimates[n, bins] for bins in bin_counts] + [[truth]])
        histogram_edges = np.linspace(all_values.min(), all_values.max() + 1e-9, 41)
        # The true error is an edge, so that no column contains estimates from both sides of it.
        histogram_edges = np.unique(np.append(histogram_edges, truth))
        for across, bins in enumerate(bin_counts):
            ax, values = axes[down, across], np.asarray(estimates[n, bins])
            below_and_above = (values[values <= truth], values[values > truth])
            ax.hist(below_and_above, bins=histogram_edges, stacked=True, color=(BELOW_COLOR, ABOVE_COLOR), lw=0)
            ax.axvline(truth, color=LINE_COLOR, lw=1.2)
            if not find_model(model).calibrated:
                ax.axvline(binned_limit(find_model(model), kind, bins), color=RED, lw=1, ls=(0, (3, 2)))
            name = "any bins" if is_constant else f"{bins} bins" if kind == "uniform" else f"≤ {bins} leaves"
            ax.set_title(f"n = {n:,}, {name}: {(values > truth).mean():.0%} above", fontsize=9)
            ax.set_yticks([])
            ax.locator_params(axis="x", nbins=4)
    lines = "solid: truth; blue: too large" + ("" if find_model(model).calibrated else "; dashed: limit of these bins")
    figure.supxlabel(f"{model}, estimates; {lines}", fontsize=9)
    save_figure(figure, path)


def draw_diagrams(models: Sequence[str], seed: int, path: Path) -> None:
    """Draw a reliability diagram of 10,000 rows for each model, and the true deviation r(p) − p over it."""
    figure, axes = make_panels(1, len(models), (4.6 * len(models), 3.9), squeeze=False)
    recipe = Reliability(partition=Uniform(20), level=0.9, style="deviation")
    for ax, name in zip(axes.flat, models, strict=True):
        model = find_model(name)
        rows = model.world.rows(np.random.default_rng([seed, DIAGRAM_ROWS]), DIAGRAM_ROWS)
        recipe(as_lens("positive").views(rows)).draw(ax)
        if model.slope == 0:
            ax.plot([0.5], [0.0], "o", ms=9, mfc="none", mec=RED, mew=1.3, zorder=5)
        else:
            p = np.linspace(float(rows.p.min()), float(rows.p.max()), 400)
            ax.plot(p, model.calibration_function(p) - p, color=RED, lw=1.3, zorder=5)
        ax.set_title(f"{name}; red: the true deviation", fontsize=9)
    save_figure(figure, path)


def draw_rates(estimates: Sequence[Row], path: Path) -> None:
    """Draw bias by noise against bins per row, and bias by binning against bins, with lines of expected slope."""
    figure, axes = make_panels(1, 3, (12, 4))
    for ax, name, power in ((axes[0], "perfect", 0.5), (axes[1], "uncalibrated", 1.0)):
        for kind in PARTITION_KINDS:
            rows = [row for row in estimates if (row["model"], row["kind"]) == (name, kind)]
            rows = [row for row in rows if row["n"] >= MIN_ROWS_PER_BIN * row["bins"]]
            rows = rows if power == 0.5 else [row for row in rows if has_narrow_bins(row)]
            shown = [(row["bins"] / row["n"], noise_bias(row, find_model(name))) for row in rows]
            shown = [(x, y) for x, y in shown if y > 0]
            if shown:
                ax.plot(*zip(*shown, strict=True), MARKS[kind], ms=4, color=COLORS[kind], alpha=0.8)
        _draw_slope(ax, power)
        ax.set(xscale="log", yscale="log", xlabel="bins / n", title=f"chance adds, {name} model")
    for kind in PARTITION_KINDS:
        biases = binning_biases(find_model("uncalibrated"), kind)
        axes[2].plot(
            list(biases), list(biases.values()), MARKS[kind], ms=2.5, color=COLORS[kind], alpha=0.8, label=kind
        )
    _draw_slope(axes[2], -2.0)
    axes[2].set(xscale="log", yscale="log", xlabel="bins", title="bins hide, uncalibrated model")
    for ax in axes:
        ax.tick_params(which="minor", labelbottom=False, labelleft=False)
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def _draw_slope(ax: Any, power: float) -> None:
    """Draw a line with the expected slope through the mean of the drawn points, in logarithms."""
    lines = [artist for artist in ax.lines if len(artist.get_xdata())]
    if not lines:
        return
    x = np.log(np.concatenate([np.asarray(artist.get_xdata(), dtype=float) for artist in lines]))
    y = np.log(np.concatenate([np.asarray(artist.get_ydata(), dtype=float) for artist in lines]))
    ends = np.array([x.min(), x.max()])
    line = np.exp(y.mean() + power * (ends - x.mean()))
    ax.plot(np.exp(ends), line, color=LINE_COLOR, lw=1, label="slope as expected")
