"""Which estimator of the calibration error is closest to the truth, after Posocco and Bonnefoy (2021)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trueodds.core.progress import Progress
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.estimators import error_tables, figures, many_classes
from trueodds_studies.estimators.error_tables import Trajectories, recommendation_table, summarize_defaults
from trueodds_studies.estimators.estimator_variants import BIN_COUNTS, LENSES, VARIANTS, choose_variants
from trueodds_studies.estimators.simulation import WORLDS, Cell, measure_cell

SIZES = (30, 39, 51, 67, 88, 115, 151, 198, 259, 339, 443, 580, 759, 994, 1301, 1703, 2229, 2918, 3820, 5000)


@dataclass(frozen=True)
class Plan:
    """Size of the experiment; by default 45 distributions with 3 training sets and 4 models each: 540 trajectories.

    Settings that begin with `other_` are for recalibrated and uneven models, and those that begin with `many` for the
    experiment with many classes.
    """

    classes: tuple[int, ...] = (2, 5, 7)
    dimensions: tuple[int, ...] = (2, 5, 7)
    distributions: int = 5  # per number of classes and dimensions
    splits: int = 3  # training sets per distribution
    train: int = 300  # rows of a training set
    models: tuple[str, ...] = ()  # by default all
    pool: int = 500_000  # rows of the holdout set, from which resamples are drawn and the true error is computed
    resamples: int = 200
    slow_resamples: int = 30  # number of the resamples that slow estimators are computed for
    floors: int = 3  # sets of redrawn labels for a noise floor
    sizes: tuple[int, ...] = SIZES
    every: int = 4  # every fourth size also has calibrated labels and other numbers of bins
    other_distributions: int = 2  # per number of classes and dimensions, with one training set
    other_every: int = 4  # every fourth size is used
    many: tuple[int, ...] = (3, 5, 10, 20, 50, 100)  # numbers of classes
    many_distributions: int = 3
    many_pool: int = 50_000
    many_rows: tuple[int, ...] = (200, 580, 2000)
    many_resamples: int = 20
    boots: int = 200  # bootstrap samples of distributions
    methods: tuple[str, ...] = ()
    seed: int = 0


QUICK = Plan(
    classes=(2, 5),
    dimensions=(2,),
    distributions=2,
    splits=1,
    pool=20_000,
    resamples=40,
    slow_resamples=10,
    floors=2,
    sizes=(30, 115, 443, 1703),
    every=1,
    other_distributions=1,
    other_every=2,
    many=(3, 10),
    many_distributions=1,
    many_pool=5000,
    many_rows=(200,),
    many_resamples=6,
    boots=60,
)

FIGURE_LEGEND = """The median over trajectories of the 95th percentile of |estimate − truth| over resamples, in brackets
95 % limits over distributions; the paper's Figure 2. {made}. mean rank: among the paper's fifteen, over sizes below
{cut}. swapped: with the weights of the authors' released code, with which the paper's numbers were computed. 0: the
constant 0. ece: uniform bins, a: equal mass, c: shared by convex weights; in brackets the number of bins, or the
bandwidth of kde."""
ERRORS_LEGEND = """Medians over trajectories: bias, sd, and RMSE of the estimate relative to its target over
resamples of n rows, and p95 of the distance; relative RMSE: RMSE divided by the truth; RMSE calibrated: with labels
drawn from the model's own probabilities, where the truth is 0. target: l1 is the mean distance, l2 its root mean
square, other a different scale, for which no error is reported. better than 0: share of trajectories whose RMSE is
below that of 0. power: how often the estimate exceeds the 95 % quantile of its distribution for the calibrated
model, not reported for estimators that use only {few} resamples ({names}); ordered correctly: how often the worse of
two models of one training set gets the larger value on the same rows (a tie counts half); means over trajectories,
and over training sets. debiased: with the noise floor subtracted as in `measure`, from {floors} redraws."""
ADVICE_LEGEND = """The best estimator by rule: for a single number, the smallest median RMSE against the mean
distance; for ranking, the largest mean share of correctly ordered pairs; for a test of calibration, the largest mean
power at 5 % of the estimators that use all resamples. Each value is the mean over the sizes of the band, with 95 %
limits over distributions. not significantly different: estimators whose difference from the best has limits that
include 0. best except 0, value except 0: the best estimator other than the constant 0, and its value. defaults:
values of four estimators with default settings; n.s.: the best, or not significantly different from it. default
among best: whether this holds for any estimator with default settings."""
BINS_LEGEND = """The number of bins of `ece`, among {counts}, with the smallest median RMSE against the mean distance,
by n; exponent: slope of its logarithm against that of n, with standard error and 95 % limits over distributions."""
WORLDS_LEGEND = """Median RMSE relative to the mean distance with n rows, for models that are recalibrated on another
{train} rows, or for uneven classes (the first is 10 times as frequent as the last). best: of the estimators other than
the constant 0."""
CLASSES_LEGEND = """A logistic regression in two dimensions with the canonical lens, total variation: here, the true
posterior is the calibration function. Mean over distributions. dirichlet_kde is halved, as L1 distances of vectors are
twice the total variation. RMSE of 0: that of the constant 0. calibrated: mean if the labels are drawn from the model;
power: share above the 95 % quantile of these values."""
TRUTHS_LEGEND = """truth, minimum, maximum: median, minimum, and maximum of the midpoint of the bracket; half width:
half the width of the bracket. Lower end: cross-fitted between halves of the holdout (100 equal-mass bins); upper end:
plug-in estimate with these bins. excess with 2000 bins: by how much the authors' true error on as many rows would
exceed the truth. lower end, 10000 bins: its median, which is biased downward; above bracket: share of trajectories in
which it exceeds the upper end by more than {rough}: there, the event rate jumps between neighboring scores, and the
truth is the value for 100 bins, which is less than the error. l2: root mean square."""


def estimators(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Which estimator of the calibration error is closest to the truth, ranks models best, and detects miscalibration?

    The complete experiment of Posocco & Bonnefoy (2021): 45 mixtures of Gaussians, three training sets of 300 rows,
    four models of scikit-learn, 200 resamples of 30 to 5,000 rows, and fifteen estimators with the lenses confidence
    and classwise. The constant 0 and the estimators of the library are added, on the same resamples, and also
    calibrated, recalibrated and uneven models, the best number of bins, up to 100 classes, and a table of recommended
    estimators. `methods` are labels of the table or names of estimators. The coverage of intervals is measured by the
    study `coverage`.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng, methods=tuple(methods or ()))
    choose_variants(plan.methods)  # raises an error for an unknown name before anything is measured
    folder = make_folder(out)
    main = run_cells("estimators", _cells(plan), measure_cell, plan, folder, progress)
    other_plan = replace(plan, sizes=plan.sizes[:: plan.other_every], every=1)
    others = run_cells("estimators.worlds", _other_world_cells(plan), measure_cell, other_plan, folder, progress)
    vectors = run_cells(
        "estimators.classes", _class_cells(plan), many_classes.measure_classes_cell, plan, folder, progress
    )
    finding = summarize(main, others, vectors, plan)
    if folder is not None:
        _save_findings(finding, folder, plan)
    return finding


def summarize(main: Sequence[Row], others: Sequence[Row], vectors: Sequence[Row], plan: Plan) -> StudyResult:
    """The result of the study with all tables.

    `main` are the cells of models as trained, `others` those of other worlds, and `vectors` those with many classes.
    """
    trajectories = Trajectories(main, plan.sizes, plan.boots, plan.seed)
    other_trajectories = {
        world: Trajectories(cells, plan.sizes[:: plan.other_every], plan.boots, plan.seed)
        for world in WORLDS[1:]
        if (cells := [cell for cell in others if cell["world"] == world])
    }
    settings = plan.__dict__
    recommendations = tuple(recommendation_table(trajectories))
    n_distributions = len(set(trajectories.distributions))
    size_text = (
        f"{len(trajectories.distributions)} trajectories, {n_distributions} distributions, {plan.resamples} resamples"
    )
    percentiles = error_tables.percentile_table(trajectories)
    errors = error_tables.error_table(trajectories)
    bin_counts = error_tables.bin_count_table(trajectories, plan.every)
    truths = error_tables.truth_table({WORLDS[0]: trajectories, **other_trajectories})
    also = [
        StudyResult(
            "estimators.figure",
            _describe_winners(percentiles, plan),
            percentiles,
            settings,
            FIGURE_LEGEND.format(made=size_text, cut=error_tables.MAX_RANKED_ROWS),
        ),
        StudyResult("estimators.errors", _describe_zero(errors), errors, settings, _errors_legend(plan)),
        StudyResult(
            "estimators.truths",
            _describe_precision(truths),
            truths,
            settings,
            TRUTHS_LEGEND.format(rough=error_tables.ROUGHNESS_TOLERANCE),
        ),
    ]
    if bin_counts:
        exponents = ", ".join(
            f"{row['exponent']:.2f} ± {row['se']:.2f} ({row['lens']}, {row['partition']})" for row in bin_counts
        )
        legend = BINS_LEGEND.format(counts=", ".join(map(str, BIN_COUNTS)))
        also.append(
            StudyResult(
                "estimators.bins",
                f"The best number of bins grows as n to the power {exponents}.",
                bin_counts,
                settings,
                legend,
            )
        )
    if other_trajectories:
        also.append(
            StudyResult(
                "estimators.worlds",
                "RMSE for recalibrated models and for uneven classes.",
                error_tables.worlds_table(other_trajectories),
                settings,
                WORLDS_LEGEND.format(train=plan.train),
            )
        )
    if vectors:
        rows = many_classes.classes_table(vectors)
        also.append(
            StudyResult("estimators.classes", many_classes.summarize_classes(rows), rows, settings, CLASSES_LEGEND)
        )
    return StudyResult(
        "estimators", summarize_defaults(recommendations), recommendations, settings, ADVICE_LEGEND, tuple(also)
    )


def _cells(plan: Plan) -> list[Cell]:
    """The cells of models as trained."""
    shapes = [(k, d) for k in plan.classes for d in plan.dimensions]
    numbers, splits = range(plan.distributions), range(plan.splits)
    return [Cell(k, d, number, split) for number in numbers for k, d in shapes for split in splits]


def _other_world_cells(plan: Plan) -> list[Cell]:
    """The cells of recalibrated and uneven models, with one training set per distribution."""
    shapes = [(k, d) for k in plan.classes for d in plan.dimensions]
    numbers = range(plan.other_distributions)
    return [Cell(k, d, number, 0, world) for number in numbers for k, d in shapes for world in WORLDS[1:]]


def _class_cells(plan: Plan) -> list[many_classes.ClassesCell]:
    """The cells of the experiment with many classes."""
    return [many_classes.ClassesCell(k, i) for i in range(plan.many_distributions) for k in plan.many]


def _describe_winners(rows: Sequence[Row], plan: Plan) -> str:
    """In words, which of the fifteen published estimators is best at which size, and where 0 is better than all."""
    phrases = []
    for lens in LENSES:
        ranked = [row for row in rows if row["lens"] == lens and row["mean rank"] is not None]
        zero = next(row for row in rows if row["lens"] == lens and row["estimator"] == "0")
        sizes = [n for n in plan.sizes if n < error_tables.MAX_RANKED_ROWS]
        if not ranked:
            continue
        closest = {n: _find_closest(ranked, n) for n in sizes}
        names = dict.fromkeys(row["estimator"] for row in closest.values())
        size_texts = [
            f"{name} at n = {', '.join(str(n) for n in sizes if closest[n]['estimator'] == name)}" for name in names
        ]
        beaten = [str(n) for n in sizes if zero[str(n)] < closest[n][str(n)]]
        phrases.append(
            f"{lens}: {'; '.join(size_texts)}; the constant 0 is more accurate than all of them at n ="
            f" {', '.join(beaten) or 'none'}"
        )
    return f"The best of the paper's fifteen. {'. '.join(phrases)}."


def _find_closest(rows: Sequence[Row], n: int) -> Row:
    """The row of the estimator with the smallest percentile at n rows."""
    return min(rows, key=lambda row: float(row[str(n)]))


def _describe_zero(rows: Sequence[Row]) -> str:
    """In words, how often the default ECE is more accurate than 0, at the smallest and largest size."""
    phrases = []
    for lens in LENSES:
        ece_rows = [row for row in rows if row["lens"] == lens and row["estimator"] == "ece"]
        if ece_rows:
            phrases.append(
                f"{lens} {ece_rows[0]['better than 0']:.2f} at n = {ece_rows[0]['n']} and"
                f" {ece_rows[-1]['better than 0']:.2f} at n = {ece_rows[-1]['n']}"
            )
    share_text = "; ".join(phrases) or "not measured"
    return f"Share of trajectories in which `ece` is more accurate than the constant 0: {share_text}."


def _errors_legend(plan: Plan) -> str:
    """The legend of the table of errors."""
    slow_labels = ", ".join(variant.label for variant in VARIANTS.values() if variant.slow)
    return ERRORS_LEGEND.format(floors=plan.floors, few=plan.slow_resamples, names=slow_labels)


def _describe_precision(rows: Sequence[Row]) -> str:
    """In words, the precision of the true errors, and for which models they are only those with 100 bins."""
    widest = max(rows, key=lambda row: float(row["maximum half width"]))
    text = f"Half the width of the bracket is at most {widest['maximum half width']:.4f}"
    rough = [f"{row['models']}, {row['lens']} ({row['above bracket']:.0%})" for row in rows if row["above bracket"] > 0]
    return f"{text}; the event rate jumps between neighboring scores of some models: {'; '.join(rough) or 'none'}."


def _save_findings(finding: StudyResult, folder: Path, plan: Plan) -> None:
    """Save all tables, short versions of two of them, and the figures."""
    finding.save(folder)
    percentiles, errors = finding.also[0], finding.also[1]
    sizes = [plan.sizes[i] for i in error_tables.shown_size_indices(plan.sizes)]
    StudyResult(
        "estimators.figure.short",
        percentiles.sentence,
        error_tables.short_percentile_table(percentiles.rows, plan.sizes),
        percentiles.settings,
        percentiles.legend,
    ).save(folder)
    shown_rows = tuple(row for row in errors.rows if row["n"] in sizes[::2])
    StudyResult("estimators.errors.short", errors.sentence, shown_rows, errors.settings, errors.legend).save(folder)
    if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
        figures.draw_percentiles(percentiles.rows, plan.sizes, folder / "estimators.svg")
        figures.draw_errors(errors.rows, folder / "estimators.errors.svg")
        bin_counts = [table for table in finding.also if table.name == "estimators.bins"]
        if bin_counts:
            figures.draw_bin_counts(bin_counts[0].rows, folder / "estimators.bins.svg")
