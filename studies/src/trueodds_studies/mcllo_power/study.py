"""Power, parameter estimates, change of ECE and size of the MCLLO test, after Vennos, Xing and Franck (2026)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trueodds.core.progress import Progress
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_change, format_range, make_folder
from trueodds_studies.mcllo_power import power_simulation, size_simulation
from trueodds_studies.mcllo_power.power_simulation import PARAMETERS
from trueodds_studies.mcllo_power.size_simulation import SIZE_FORMS

POWER_LEGEND = """{sets} data sets per row. p ~ Dirichlet(1, 1, 1); the odds of class 1 against class 3, the baseline,
are delta times the predicted ones; nothing else is miscalibrated. lrt5, lrt1: rejection rates of the likelihood ratio
at 5 and 1 % by χ² with 4 degrees of freedom, with 99 % Clopper-Pearson limits; score5, score1: the one-pass score
statistic. ncp: noncentrality 2n E KL(q‖p), by quadrature; predicted5, predicted1: probability that a noncentral χ²
variable exceeds the quantile of the central one."""

PARAMETERS_LEGEND = """bias_: mean estimate minus the true value, gamma = 1, tau_1 = log delta, tau_2 = 0; coverage_:
coverage of its 95 % interval; low, high: smallest lower and largest upper 99 % limit of these four rates; finite:
data sets with finite estimates."""

ECE_LEGEND = """Means over the first {binned} data sets of a row: confidence, ceil(sqrt(n)) bins of equal width. before:
without recalibration; after: with the map, on the rows used to fit it; new: with the same map on as many other rows.
lowered, lowered_new: share of data sets in which the map reduces the ECE, on its own and on other rows."""

SIZE_LEGEND = """{sized} calibrated data sets per cell, the same for the three forms of the test. Dirichlet(a):
symmetric, at least 1e-12; VGG16: rows of its CIFAR-10 predictions, at least 1e-6, sampled without replacement;
labels are drawn from the predictions. size5, size1 with 99 % Clopper-Pearson limits (low, high); score, redrawn:
among {resamples} redraws. noted: share of data sets in which the likelihood ratio by χ² has the note TN212 (used for
the score too); unnoted5, unnoted1: size among the others. verdict: exceeds if the lower 99 % limit, with
Bonferroni's correction for all {rates} rates, is above the level; exceeds, noted: if most of those rejections have
the note and the other data sets keep the level."""

DESIGN_LEGEND = (
    "Percent of the data sets, [99 % Clopper-Pearson limits]; *: above the level by more than Monte Carlo error, with"
    " Bonferroni's correction for the {rates} rates of the table; noted: data sets with the note TN212 on χ²."
)

POWER_COLUMNS = (
    "n", "delta", "sets", "lrt5", "lrt5_low", "lrt5_high", "predicted5", "score5",
    "lrt1", "lrt1_low", "lrt1_high", "predicted1", "score1", "ncp",
)  # fmt: skip
ECE_COLUMNS = ("n", "delta", "before", "after", "new", "lowered", "lowered_new")


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each data set has its own random stream, so resuming does not change results."""

    sets: int = 1000  # data sets per shift and number of rows
    binned: int = 250  # number of these data sets for which the ECE is computed
    rows: tuple[int, ...] = (50, 100, 250, 500, 1000, 2500)
    deltas: tuple[float, ...] = (1.0, 1.25, 1.5, 2.0, 3.0)  # factors of the odds of class 1
    sized: int = 1000  # data sets with calibrated predictions per design and number of rows
    sized_rows: tuple[int, ...] = (60, 132, 400, 2000)  # numbers of rows for the size
    classes: tuple[int, ...] = (2, 3, 7, 10)  # numbers of classes for the size
    resamples: int = 99
    seed: int = 0


QUICK = Plan(
    sets=60, binned=30, rows=(50, 250), deltas=(1.0, 1.5, 3.0), sized=30, sized_rows=(60, 400), classes=(3, 10)
)


def mcllo_power(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Simulations of Vennos, Xing & Franck (2026): power, parameters, ECE before and after, and size.

    Power of the likelihood ratio and of the one-pass score if one of three classes is underpredicted,
    compared with the noncentral χ² distribution; bias and coverage of the parameters; ECE on the rows
    of the fit and on new rows. Then the size of both and of the score with redrawn labels for 2 to 10
    classes, with uniform and sharp vectors and, if its file is available, those of a network. The
    sample sizes, shifts, and distribution of p in the paper were not available; these are ours.

    >>> size = {"sized": 2, "sized_rows": (60,), "classes": (2,), "resamples": 19}
    >>> small = Plan(sets=5, binned=2, rows=(50,), deltas=(1.0, 3.0), **size)
    >>> finding = mcllo_power(plan=small)
    >>> [row["delta"] for row in finding.rows], [table.name for table in finding.also]
    ([1.0, 3.0], ['mcllo_power.parameters', 'mcllo_power.ece', 'mcllo_power.size'])
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows, sizes = _run_simulations(plan, folder, data, progress)
    legend_values = plan.__dict__ | {"rates": 2 * len(sizes)}
    tables = (
        StudyResult(
            "mcllo_power.parameters",
            _summarize_parameters(rows),
            _parameter_table(rows),
            plan.__dict__,
            PARAMETERS_LEGEND,
        ),
        StudyResult(
            "mcllo_power.ece",
            _summarize_ece(rows),
            _select_columns(rows, ECE_COLUMNS),
            plan.__dict__,
            ECE_LEGEND.format(**legend_values),
        ),
        StudyResult(
            "mcllo_power.size",
            size_simulation.summarize_size(sizes),
            sizes,
            plan.__dict__,
            SIZE_LEGEND.format(**legend_values),
        ),
    )
    finding = StudyResult(
        "mcllo_power",
        summarize(rows, sizes),
        _select_columns(rows, POWER_COLUMNS),
        plan.__dict__,
        POWER_LEGEND.format(**legend_values),
        also=tables,
    )
    if folder is not None:
        finding.save(folder)
        StudyResult(
            "mcllo_power.by_design",
            size_simulation.summarize_size(sizes),
            size_simulation.world_table(sizes),
            plan.__dict__,
            DESIGN_LEGEND.format(**legend_values),
        ).save(folder)
        _draw_if_possible(rows, sizes, folder)
    return finding


def _run_simulations(
    plan: Plan, folder: Path | None, data: str | Path | None, progress: Progress | None
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Run the simulations of power and of size, and return the rows of each."""
    # The most expensive cells are first.
    power_cells = [
        power_simulation.PowerCell(n, delta) for n in sorted(plan.rows, reverse=True) for delta in plan.deltas
    ]
    size_cells = list(size_simulation.size_cells(plan.sized_rows, plan.classes, data))
    share = len(power_cells) / (len(power_cells) + len(size_cells))
    rows = run_cells(
        "mcllo_power",
        power_cells,
        power_simulation.measure_power,
        plan,
        folder,
        _partial_progress(progress, 0.0, share),
    )
    rows = tuple(sorted(rows, key=lambda row: (row["n"], row["delta"])))
    sizes = size_simulation.add_form_verdicts(
        run_cells(
            "mcllo_power.size",
            size_cells,
            size_simulation.measure_size,
            plan,
            folder,
            _partial_progress(progress, share, 1 - share),
            size_simulation.hash_data_files(size_cells),
        )
    )
    return rows, sizes


def summarize(rows: Sequence[Row], sizes: Sequence[Row]) -> str:
    """In words, how well noncentral χ² predicts the power, and how often each form exceeds its level."""
    gap = max(abs(row["lrt5"] - row["predicted5"]) for row in rows)
    score_gap = max(abs(row["lrt5"] - row["score5"]) for row in rows)
    n_exceeding = {form: _count_exceeding(sizes, form) for form in SIZE_FORMS}
    return (
        f"The noncentral χ² distribution predicts the power of the likelihood ratio to within {gap:.3f} in all"
        f" {len(rows)} cells, and the power of the score, which requires no fit, differs from it by at most"
        f" {score_gap:.3f}; for calibrated predictions, the likelihood ratio by χ² exceeds its level in"
        f" {n_exceeding[SIZE_FORMS[0]]} cells, the score by χ² in {n_exceeding[SIZE_FORMS[1]]} and the score among"
        f" redrawn labels in {n_exceeding[SIZE_FORMS[2]]}."
    )


def _count_exceeding(sizes: Sequence[Row], form: str) -> str:
    """How many of the cells of a form of the test exceed their level, as text."""
    exceeds = [row["verdict"].startswith("exceeds") for row in sizes if row["test"] == form]
    return f"{sum(exceeds)} of {len(exceeds)}"


def _parameter_table(rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per shift and number of rows: bias and coverage of each parameter, and the limits of the coverages."""
    table = []
    for row in rows:
        estimates = {
            f"{statistic}_{name}": row.get(f"{statistic}_{name}")
            for statistic in ("bias", "coverage")
            for name in PARAMETERS
        }
        values_by_end = {
            end: [row[f"{end}_{name}"] for name in PARAMETERS if f"{end}_{name}" in row] for end in ("low", "high")
        }
        limits = {"low": min(values_by_end["low"], default=None), "high": max(values_by_end["high"], default=None)}
        table.append({key: row[key] for key in ("n", "delta", "finite")} | estimates | limits)
    return tuple(table)


def _summarize_parameters(rows: Sequence[Row]) -> str:
    """In words, the largest bias of a parameter at the smallest and largest n, and the coverage of the intervals."""
    finite_rows = [row for row in rows if row["finite"]]
    if not finite_rows:
        return "No fit had finite parameters."
    min_n, max_n = min(row["n"] for row in rows), max(row["n"] for row in rows)
    first, last = (_largest_bias([row for row in finite_rows if row["n"] == n]) for n in (min_n, max_n))
    bias = f"is {first:.3f} at n = {min_n:,}"
    if max_n > min_n:
        bias = f"{format_change(first, last)} as n goes from {min_n:,} to {max_n:,}"
    covers = [100 * row[f"coverage_{name}"] for row in finite_rows for name in PARAMETERS]
    return (
        f"The largest bias of a parameter {bias}, and the coverage of its 95 % interval is {format_range(covers, 1)} %."
    )


def _largest_bias(rows: Sequence[Row]) -> float:
    """The largest absolute bias of a parameter; NaN without rows."""
    return max((abs(row[f"bias_{name}"]) for row in rows for name in PARAMETERS), default=float("nan"))


def _summarize_ece(rows: Sequence[Row]) -> str:
    """In words, the change of the mean ECE by the map for the smallest and the largest shift."""
    deltas = [row["delta"] for row in rows]
    smallest_shift = [row for row in rows if row["delta"] == min(deltas)]
    largest_shift = [row for row in rows if row["delta"] == max(deltas)]
    text = "; ".join(
        f"at delta = {shifted_rows[0]['delta']:g} its mean changes by {_format_changes(shifted_rows, 'after')} on the"
        f" rows of the fit and by {_format_changes(shifted_rows, 'new')} on new rows"
        for shifted_rows in (smallest_shift, largest_shift)
    )
    return f"ECE after the map, over all n: {text}."


def _format_changes(rows: Sequence[Row], name: str) -> str:
    """The range of a column minus the ECE before recalibration."""
    changes = [row[name] - row["before"] for row in rows if row.get(name) is not None]
    return f"{min(changes):+.4f} to {max(changes):+.4f}"


def _select_columns(rows: Sequence[Row], names: Sequence[str]) -> tuple[Row, ...]:
    """The rows with these columns only; missing values are None."""
    return tuple({name: row.get(name) for name in names} for row in rows)


def _partial_progress(progress: Progress | None, start: float, share: float) -> Progress | None:
    """The callback for a part of the work: a share of the total that begins at `start`."""
    return None if progress is None else lambda done, what: progress(start + share * done, what)


def _draw_if_possible(rows: Sequence[Row], sizes: Sequence[Row], folder: Path) -> None:
    """Draw the figures if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is not None:
        power_simulation.draw_power(rows, folder / "mcllo_power.svg")
        power_simulation.draw_parameters(rows, folder / "mcllo_power.parameters.svg")
        power_simulation.draw_ece(rows, folder / "mcllo_power.ece.svg")
        size_simulation.draw_size(sizes, folder / "mcllo_power.size.svg")
