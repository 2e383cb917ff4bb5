"""Log loss, accuracy, ECE and its p-value over the epochs of one or several training runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.rng import as_generator, stream_key
from trueodds.core.settings import Level, Resamples
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_level
from trueodds.diagrams._style.marks import Band, HLine, Line, Mark, PanelSize, Points, draw_marks
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import is_significant, wilson_intervals
from trueodds.diagrams.recipe import BinnedRecipe, Models
from trueodds.diagrams.table_columns import rows_to_columns
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.proper_scores import LogLoss
from trueodds.hypotests.consistency import Consistency
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.ranked import Confidence
from trueodds.lenses.view import View
from trueodds.tallies.proper_score_sums import ProperScoreSums, log_loss
from trueodds.tallies.tally import Tally, lens_views


@dataclass(frozen=True)
class Training(BinnedRecipe):
    r"""Log loss, accuracy, ECE and p-value of the consistency test by epoch, for one or several training runs.

    The diagram shows whether the model is still calibrated when its log loss is lowest, or whether it was calibrated at
    an earlier epoch. Models are named by their epoch, a number, as in ``draw({"1": preds1, "2": preds2},
    "training")``, and those of several runs by ``run/epoch``, as in ``{"a/1": …, "b/1": …}``. All models must predict
    the same kind of outcome, preferably for the same held-out rows. An asterisk marks the epoch of each run with the
    lowest log loss.

    Parameters
    ----------
    partition : Partition, optional
        The bins of the ECE. The default is that of the estimator `ece`: 15 uniform bins, or for vectors a
        median-variance tree of 16 leaves (three classes) or cells by predicted class (more classes).
    level : float, default=0.95
        Confidence level of the intervals. P-values of at most 1 − `level` are below the dashed line.
    resamples : int, default=999
        The number of simulations of the test for each model.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for names without an epoch and for models with different outcomes.

    Notes
    -----
    The marked epoch is :math:`\arg\min_t -\tfrac1w \sum_i w_i \log p^{(t)}_{i, y_i}`. Log loss and accuracy are those
    of the whole prediction, with normal and Wilson intervals. The intervals describe the precision of each value, not
    whether two epochs differ, which ``trueodds.compare`` tests on the same rows more powerfully. ECE and p-value depend
    on the lens. The dotted line is the noise floor, the mean ECE of that epoch under calibration. The p-value is that
    of the test ``consistency``; all epochs use the same seed.

    Views: any, for each model. One panel has four parts. Units: nats, then probability.

    Columns of ``table``: ``view run epoch n log_loss log_loss_low log_loss_high accuracy accuracy_low accuracy_high ece
    noise_floor pvalue lowest_log_loss``, with a row for each run and epoch. Accuracy is NaN if labels do not exclude
    each other.

    Cost: one ``consistency`` test for each model. 10,000 rows of 10 classes take about 0.01 s with the lens
    ``confidence`` and 0.15 s with ``canonical``.

    References
    ----------
    .. [1] Vaicenavicius et al. (2019), figure 3.

    Examples
    --------
    >>> import trueodds as to
    >>> y = [0, 1] * 50
    >>> epochs = {"1": to.Predictions(y, [0.4, 0.6] * 50), "2": to.Predictions(y, [0.01, 0.6] * 50)}
    >>> diagram = to.draw(epochs, "training", resamples=99)
    >>> diagram.table["log_loss"].round(3).tolist(), diagram.table["lowest_log_loss"].tolist()
    ([0.511, 0.26], [False, True])
    """

    name: ClassVar[str] = "training"
    accepts_several_models: ClassVar[bool] = True
    accepts_joint_views: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = ("noise_floor", "pvalue")
    count_columns: ClassVar[tuple[str, ...]] = ("n", "log_loss_low", "log_loss_high", "accuracy_low", "accuracy_high")
    exemptions: ClassVar[dict[str, str]] = {
        "class order": "each epoch has one row for all classes, and ties are predicted as the first class"
    }
    level: Level = 0.95
    resamples: Resamples = 999

    def __call__(self, views: Sequence[View], rng: int | np.random.Generator = 0) -> Diagram:
        """Raise an error, because views without model names have no epoch."""
        raise epoch_name_error("views without a model name")

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        data_by_epoch = {parse_epoch(name): data for name, data in models.items()}
        check_epochs(models, data_by_epoch)
        seed = stream_key(rng) if isinstance(rng, np.random.Generator) else rng
        runs = list(dict.fromkeys(epoch.run for epoch in data_by_epoch))  # in the order in which they are given
        epochs = sorted(data_by_epoch, key=lambda epoch: (runs.index(epoch.run), epoch.number))
        notes: list[Note] = []
        columns = rows_to_columns([self._epoch_row(lens, epoch, data_by_epoch[epoch], seed, notes) for epoch in epochs])
        table = {**columns, "lowest_log_loss": _has_lowest_loss(columns)}
        if table["lowest_log_loss"].any():
            text = (
                "The epoch with the lowest log loss was selected on the rows that evaluate it: expect a higher loss "
                "on new data."
            )
            notes.append(Note("TN265", text))
        row = self._panel_row(str(lens), table)
        settings = self._settings | {"partition": None if self.partition is None else str(self.partition)}
        return self.build_diagram(TrainingPlot, str(lens), [table], [row], settings, dict.fromkeys(notes))

    def _epoch_row(
        self, lens: Lens, epoch: Epoch, data: Predictions | Tally, seed: int, notes: list[Note]
    ) -> dict[str, Any]:
        """The table row of one epoch: log loss, accuracy and ECE, each with its uncertainty. Adds to `notes`."""
        test = Consistency(statistic=BinnedError(self.partition), resamples=self.resamples)
        generator = as_generator(seed)
        verdict = test.run(data, [lens], generator)
        notes += verdict.notes
        loss, standard_error = mean_log_loss(data)
        if isinstance(data, Predictions) and math.isinf(loss):
            epoch_text = f"{epoch.run}/{epoch.number:g}".removeprefix("/")
            notes += [replace(note, text=f"Epoch {epoch_text}: " + note.text) for note in infinite_loss_notes(data)]
        half_width = float(ndtri((1 + self.level) / 2)) * standard_error
        correctness = correctness_view(data)
        accuracy = accuracy_low = accuracy_high = math.nan
        if correctness is not None:
            accuracy = float(weighted_sum(correctness.w, correctness.y) / correctness.total)
            all_in_one_bin = np.zeros(len(correctness.w), dtype=np.intp)
            interval = wilson_intervals(correctness, all_in_one_bin, 1, self.level)
            accuracy_low, accuracy_high = float(interval.low[0]), float(interval.high[0])
        return {
            "view": str(lens),
            "run": epoch.run,
            "epoch": epoch.number,
            "n": data.n,
            "log_loss": loss,
            "log_loss_low": max(loss - half_width, 0.0),
            "log_loss_high": loss + half_width,
            "accuracy": accuracy,
            "accuracy_low": accuracy_low,
            "accuracy_high": accuracy_high,
            "ece": float(verdict.statistic),
            "noise_floor": float(verdict.statistic) - float(verdict.effect or 0.0),
            "pvalue": float(verdict.pvalue),
        }

    def _panel_row(self, lens_name: str, table: Mapping[str, Array]) -> dict[str, Any]:
        lowest_loss_rows = np.flatnonzero(table["lowest_log_loss"])
        n_miscalibrated = int(is_significant(table["pvalue"][lowest_loss_rows], self.level).sum())
        n_runs, n_epochs = len(set(table["run"])), len(table["run"])
        aside = (
            f"{n_miscalibrated} of {len(lowest_loss_rows)} miscalibrated at lowest loss"
            if n_runs > 1
            else f"{n_epochs} {'epochs' if n_epochs > 1 else 'epoch'}"
        )
        return {
            "view": lens_name,
            "title": lens_name,
            "aside": aside,
            "finding": _describe_finding(table, lowest_loss_rows, n_miscalibrated, self.level),
            "n": int(table["n"].max()),
            "runs": n_runs,
            "epochs": n_epochs,
            "n_miscalibrated": n_miscalibrated,
        }


def _has_lowest_loss(table: Mapping[str, Array]) -> Array:
    """Mask (epochs,) of the epoch of each run with the lowest finite log loss, the first one if several have it."""
    mask = np.zeros(len(table["run"]), dtype=bool)
    for run in dict.fromkeys(table["run"]):
        run_rows = np.flatnonzero((table["run"] == run) & np.isfinite(table["log_loss"]))
        if len(run_rows):
            mask[run_rows[np.argmin(table["log_loss"][run_rows])]] = True
    return mask


def _describe_finding(table: Mapping[str, Array], lowest_loss_rows: Array, n_miscalibrated: int, level: float) -> str:
    """Describe whether the epochs with the lowest log loss, given by their row numbers, are miscalibrated."""
    if not len(lowest_loss_rows):
        return "No epoch has a finite log loss."
    alpha = f"{100 * (1 - level):.3g}\u00a0%"
    if len(lowest_loss_rows) > 1:
        chance = f"; about {len(lowest_loss_rows) * (1 - level):.2g} expected by chance" if n_miscalibrated else ""
        return (
            f"At the lowest log loss, {_count_runs(n_miscalibrated, len(lowest_loss_rows))} significantly miscalibrated"
            f" (p\u00a0≤\u00a0{alpha}){chance}."
        )
    i = int(lowest_loss_rows[0])
    significance_text = "the ECE is significant" if n_miscalibrated else "the ECE is consistent with calibration"
    ece, noise_floor, p = (format_number(float(table[name][i])) for name in ("ece", "noise_floor", "pvalue"))
    return (
        f"The log loss is lowest at epoch {table['epoch'][i]:g}, where {significance_text}: {ece} "
        f"(noise\u00a0floor\u00a0{noise_floor}, p\u00a0=\u00a0{p})."
    )


def _count_runs(count: int, n_runs: int) -> str:
    """Return a number of runs, of `n_runs` (at least two), as the subject of a sentence with its verb."""
    if count == n_runs:
        return "both runs are" if n_runs == 2 else f"all {n_runs} runs are"
    return f"{count or 'none'} of {n_runs} runs {'is' if count <= 1 else 'are'}"


class Epoch(NamedTuple):
    """One epoch of a training run."""

    run: str  # name of the run; empty if there is only one, without a name
    number: float


_EPOCH_NAME = re.compile(r"(?:(?P<run>.+)/)?(?P<epoch>[^/]+)", re.DOTALL)


def parse_epoch(name: str) -> Epoch:
    """Parse the name of a model, ``epoch`` or ``run/epoch``. Raises TO205 for a name without a number.

    >>> parse_epoch("a/3"), parse_epoch("0.5")
    (Epoch(run='a', number=3.0), Epoch(run='', number=0.5))
    """
    match = _EPOCH_NAME.fullmatch(name)
    try:
        number = float(match["epoch"]) if match else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise epoch_name_error(repr(name))
    return Epoch((match["run"] or "") if match else "", number)


def epoch_name_error(got: str) -> InputError:
    """The error TO205 for model names without an epoch; `got` describes them."""
    fix = "For instance draw({'1': first, '2': second}, 'training'), or {'a/1': …, 'b/1': …} for several runs."
    return InputError("TO205", "The diagram training requires models named by their epoch, or by run/epoch.", got, fix)


def check_epochs(models: Mapping[str, Predictions | Tally], data_by_epoch: Mapping[Epoch, Predictions | Tally]) -> None:
    """Raise TO205 for duplicate epochs, a mix of named and unnamed runs, and models with different outcomes.

    `models` are the data by the name of the model, `data_by_epoch` the same by the parsed names.
    """
    fix = "Give each run and epoch a unique name."
    if len(data_by_epoch) < len(models):
        raise InputError("TO205", "Two models have the same run and epoch.", ", ".join(models), fix)
    if len({epoch.run == "" for epoch in data_by_epoch}) > 1:
        raise InputError("TO205", "Some model names have a run and some do not.", ", ".join(models), fix)
    layouts = {(data.kind, tuple(map(str, data.classes))) for data in models.values()}
    if len(layouts) > 1:
        got = " and ".join(sorted(f"{kind} of {len(classes)}" for kind, classes in layouts))
        raise InputError("TO205", "All epochs must predict the same outcomes.", got, "Draw them in separate diagrams.")


def mean_log_loss(data: Predictions | Tally) -> tuple[float, float]:
    """Mean log loss of the whole prediction, in nats, and its standard error."""
    if isinstance(data, Tally):
        sums = data.score("log_loss")
        return sums["mean"], sums["standard_error"]
    if data.kind == "multilabel":
        losses_by_label = [log_loss(p, y) for p, y in zip(data.P.T, data.Y.T, strict=True)]
        loss_sums = ProperScoreSums.from_scores(np.mean(losses_by_label, axis=0), data.weight)
    else:
        (view,) = (Confidence() if data.kind == "confidence" else Canonical()).views(data)
        loss_sums = ProperScoreSums.from_scores(LogLoss().row_scores(view), view.w)
    return loss_sums.mean, loss_sums.standard_error


def infinite_loss_notes(data: Predictions) -> list[Note]:
    if data.kind == "multilabel":
        return []
    (view,) = (Confidence() if data.kind == "confidence" else Canonical()).views(data)
    return LogLoss().notes(view)


def correctness_view(data: Predictions | Tally) -> View | None:
    """The view of whether the predicted class is correct; None for multilabel data."""
    if data.kind == "multilabel":
        return None
    (view,) = lens_views(data, Confidence())
    return view


# Okabe & Ito, from dark to light so that runs differ in grayscale too. Further runs share one color.
_RUN_COLORS = (styling.INSIDE_COLOR, styling.OUTSIDE_COLOR, "#009E73", "#222222", "#CC79A7", "#E69F00")
_RUN_MARKERS = ("o", "s", "^", "D", "v", "P")
_PART_TITLES = {"log_loss": "Log loss", "accuracy": "Accuracy", "ece": "ECE", "pvalue": "p-value"}
_MAX_NAME_WIDTH = 120.0  # largest width in points of the name of a run in the legend
_GAP_X, _GAP_Y = 0.62, 0.36  # inches between the parts, with room for tick labels, and for a title
_MAX_EPOCHS_WITH_MARKERS = 25  # a line over more epochs has no markers
_LOWEST_LOSS_STYLE: dict[str, Any] = {
    "marker": "*", "markersize": 11, "color": "#FFD23F", "markeredgecolor": "#222222", "markeredgewidth": 0.8
}  # fmt: skip


class TrainingPlot(Diagram):
    """Log loss, accuracy, ECE and p-value over the epochs, in four parts of a panel, with a line for each run."""

    question = "Is the model calibrated when its log loss is lowest?"
    labels = "", ""
    layers = ("intervals", "noise_floor", "threshold", "lowest_log_loss")
    figure_size = (6.4, 5.2)
    row_noun = "epochs"
    has_inset_axes = True

    @property
    def runs(self) -> list[str]:
        return [str(run) for run in dict.fromkeys(self.table["run"])]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw the four parts as inset axes, positioned in data coordinates."""
        rows = self.rows(panel)
        ax.set_axis_off()
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        axes_width, axes_height = styling.size_in_inches(ax)
        gap_x, gap_y = min(_GAP_X / axes_width, 0.3), min(_GAP_Y / axes_height, 0.25)
        # Titles of the upper parts and the axis label below stay inside; only tick labels are outside the axes.
        top_margin, bottom_margin = min(0.22 / axes_height, 0.15), min(0.17 / axes_height, 0.12)
        width, height = (1 - gap_x) / 2, (1 - gap_y - top_margin - bottom_margin) / 2
        for i, (column, title) in enumerate(_PART_TITLES.items()):
            row, column_number = divmod(i, 2)
            left, bottom = column_number * (width + gap_x), bottom_margin + (1 - row) * (height + gap_y)
            # In data coordinates: where a legend is put above, the limits grow and the parts make room.
            part_axes = ax.inset_axes((left, bottom, width, height), transform=ax.transData)
            part_axes.set_label(column)
            _set_part_axes(part_axes, rows, column, title)
            draw_marks(part_axes, [mark for mark in self._part_marks(rows, column) if self.has(mark.layer)])
            if row == 0:
                part_axes.tick_params(labelbottom=False)
            else:
                part_axes.set_xlabel("Epoch", fontsize=styling.font_size(ax), color=styling.TEXT_COLOR, labelpad=2)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        return [mark for column in _PART_TITLES for mark in self._part_marks(self.rows(panel), column)]

    def _part_marks(self, rows: Mapping[str, Array], column: str) -> list[Mark]:
        """The column of the table that one part shows: a line for each run, and what belongs to it."""
        runs, level = self.runs, self.settings["level"]
        lines, bands, floors, lowest = list[Mark](), list[Mark](), list[Mark](), list[Mark]()
        dotted: dict[str, Any] = {"layer": "noise_floor", "label": "noise floor", "linestyle": (0, (1, 1.4))}
        dotted |= {"linewidth": 1.4, "zorder": 2, "key": {"color": styling.MUTED_COLOR}}
        for i, run in enumerate(runs):
            run_rows = {name: values[rows["run"] == run] for name, values in rows.items()}
            epoch, is_lowest = run_rows["epoch"], run_rows["lowest_log_loss"]
            # Infinite and missing values leave a gap in the line.
            values, style = _replace_infinite(run_rows[column]), _run_style(i, len(runs))
            markers = {"markersize": 3} if len(values) <= _MAX_EPOCHS_WITH_MARKERS else {"marker": ""}
            line = style | markers | {"name": "run", "label": _run_label(run, runs), "zorder": 3}
            lines.append(Line(epoch, values, key=style | {"markersize": 4}, **line))
            if f"{column}_low" in run_rows:
                ends = (_replace_infinite(run_rows[f"{column}_{end}"]) for end in ("low", "high"))
                band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                band |= {"layer": "intervals", "label": f"{format_level(level)} interval"}
                bands.append(Band(epoch, *ends, key={"color": styling.MUTED_COLOR, "alpha": 0.22}, **band))
            if column == "ece":
                floors.append(Line(epoch, run_rows["noise_floor"], color=style["color"], **dotted))
            star = _LOWEST_LOSS_STYLE | {"layer": "lowest_log_loss", "label": "lowest log loss"}
            lowest.append(Points(epoch[is_lowest], values[is_lowest], zorder=5, clip_on=False, **star))
        marks = [*lines, *lowest, *floors, *bands]
        if column == "pvalue":
            dashed: dict[str, Any] = {"color": styling.MUTED_COLOR, "linestyle": (0, (4, 2)), "linewidth": 1.0}
            label = f"p = {100 * (1 - level):.3g}\u00a0%"
            marks.append(HLine(1 - level, layer="threshold", label=label, zorder=2, **dashed))
        return marks


def _run_label(run: str, runs: Sequence[str]) -> str:
    """The label of a run in the legend; many runs share one, and a single one has none."""
    if len(runs) > len(_RUN_COLORS):
        return f"{len(runs)} runs"
    return styling.shorten_text(run, _MAX_NAME_WIDTH, 8.5) if len(runs) > 1 else ""


def _replace_infinite(values: Array) -> Array:
    """Replace infinite values by NaN, which matplotlib leaves out."""
    return np.where(np.isfinite(values), values, np.nan)


def _run_style(i: int, n_runs: int) -> dict[str, Any]:
    """The line style of run number i of `n_runs`; many runs share one style."""
    if n_runs > len(_RUN_COLORS):
        return {"color": styling.INSIDE_COLOR, "linewidth": 0.8, "alpha": 0.7, "marker": ""}
    return {"color": _RUN_COLORS[i], "linewidth": 1.3, "marker": _RUN_MARKERS[i]}


def _set_part_axes(ax: Any, rows: Mapping[str, Array], column: str, title: str) -> None:
    """Set integer epochs along x, percentages for accuracy, and a logarithmic scale for p-values."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    size = styling.font_size(ax)
    styling.style_axes(ax, size)
    # The name of a part may extend beyond narrow axes: the labels of the axes beside it leave room.
    max_width = max(styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0], 6 * size)
    style: dict[str, Any] = {"fontsize": size + 0.5, "fontweight": "bold", "color": styling.TEXT_COLOR}
    ax.set_title(styling.shorten_text(title, max_width, size + 0.5, "bold"), loc="left", pad=3, **style)
    epochs = rows["epoch"]
    width, height = styling.size_in_inches(ax)
    epoch_range = float(np.ptp(epochs)) or 1.0
    ax.set_xlim(float(epochs.min()) - 0.04 * epoch_range, float(epochs.max()) + 0.04 * epoch_range)
    all_integer = bool((epochs == np.round(epochs)).all())
    ax.xaxis.set_major_locator(MaxNLocator(6 if width > 1.6 else 3, integer=all_integer, steps=[1, 2, 5, 10]))
    if column == "pvalue":
        lowest_pvalue = min(float(rows["pvalue"].min()), 0.01)
        ax.set_yscale("log")
        ax.set_ylim(lowest_pvalue / 1.6, 1.6)
        ax.yaxis.set_minor_formatter(NullFormatter())
        ticks = [10.0**k for k in range(int(np.ceil(np.log10(lowest_pvalue) - 1e-9)), 1)]
        ax.set_yticks(ticks if len(ticks) <= 4 or height > 1 else ticks[:: len(ticks) - 1], minor=False)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(MaxNLocator(1))
        ax.set_yticks([], minor=True)
        return
    ax.yaxis.set_major_locator(MaxNLocator(5 if height > 1 else 3, steps=[1, 2, 2.5, 5, 10]))
    if column == "ece":
        values = np.concatenate([rows["ece"], rows["noise_floor"]])
        ax.set_ylim(0, 1.05 * max(values[np.isfinite(values)], default=0.0) or 1.0)
    if column == "accuracy":
        ax.yaxis.set_major_formatter(styling.format_percent_tick)
