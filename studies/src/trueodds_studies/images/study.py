"""Recalibration of five CIFAR-10 networks over random splits of the rows, as in Vennos, Xing and Franck (2026)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.draw import draw
from trueodds.api.fit import fit
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.figures import BLUE, RED, make_figure, remove_frame, save_figure
from trueodds_studies.common.network_predictions import (
    CIFAR10_CLASSES,
    CIFAR10_FILES,
    check_network,
    load_cifar10_softmax,
    load_cifar10_split,
    split_rows,
)
from trueodds_studies.common.recalibration_methods import MIN_PROB
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, make_folder
from trueodds_studies.images import published_numbers, split_results
from trueodds_studies.images.published_numbers import PUBLISHED_IMAGES, PUBLISHED_PROB_AFTER
from trueodds_studies.images.split_results import ALL_METHODS, WITH_ZEROS, measure_split

PAPER_NETWORK = next(iter(CIFAR10_FILES))  # the network whose numbers are compared with the published ones


@dataclass(frozen=True)
class Plan:
    """Number of random splits, each with its own random stream, so that resuming does not change results."""

    splits: int = 20
    seed: int = 0


QUICK = Plan(splits=1)


@dataclass(frozen=True)
class Cell:
    """One network and one split."""

    net: str
    split: int
    data: str | None  # folder of the data files, which does not change the results

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.net} | {self.split}"


def images(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Recalibration of five networks on CIFAR-10, fitted on 8,000 test images and evaluated on the other 2,000.

    Tables: every method over random splits, MCLLO's parameters, published numbers beside those of
    VGG16, classes that remain miscalibrated, the effect of the smallest probability, and single
    images. Figures: accuracy against calibration, single images, and reliability in ten bins.
    `methods` are networks. Source: Vennos, Xing & Franck (2026), section 4.2.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    nets = [check_network(name, CIFAR10_FILES) for name in methods or CIFAR10_FILES]
    for net in nets:
        load_cifar10_softmax(net, data_folder)  # a missing array raises an error before anything is measured
    file_names = dict.fromkeys(CIFAR10_FILES[net][0] for net in nets)
    file_hashes = {name: hash_file(name, data_folder) for name in file_names}
    tasks = [Cell(net, number, data_folder) for net in nets for number in range(plan.splits)]
    cells = run_cells("images", tasks, measure_cell, plan, folder, progress, file_hashes)
    rows = split_results.method_means(cells)
    also, single_images = _further_tables(cells, nets, data_folder, plan)
    finding = StudyResult(
        "images", split_results.summarize(rows), rows, plan.__dict__, split_results.methods_legend(cells), also
    )
    if folder is not None:
        finding.save(folder)
        StudyResult(
            "images.methods", finding.sentence, split_results.short_table(rows), plan.__dict__, finding.legend
        ).save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_tradeoff(rows, folder / "images.trade.svg")
            if single_images:  # files with other images than CIFAR-10 may have none
                draw_single_images(single_images, folder / "images.single.svg")
            draw_reliability(*load_cifar10_split(nets[0], data_folder, plan.seed, 0), folder / "images.reliability.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """All results for one split of one network."""
    learn, held_out = load_cifar10_split(cell.net, cell.data, plan.seed, cell.split)
    return {"net": cell.net, "split": cell.split, **measure_split(learn, held_out)}


NamedTable = tuple[str, str, Sequence[Mapping[str, Any]], str]  # name, sentence, rows and legend of a table


def _further_tables(
    cells: Sequence[Mapping[str, Any]], nets: Sequence[str], data: str | None, plan: Plan
) -> tuple[tuple[StudyResult, ...], Sequence[Mapping[str, Any]]]:
    """The other tables of the study, and the single images for their figure."""
    single_images, sentence = image_rows(nets[0], data, plan.seed)
    legend = (
        "The five most probable classes for single images of the test set, numbered from 0; map of the first split."
    )
    tables: list[NamedTable] = [
        *(_paper_tables(cells) if PAPER_NETWORK in nets else ()),
        _parameter_table(cells),
        _rejected_class_table(cells),
        _min_prob_table(cells),
        ("single", sentence, single_images, legend),
    ]
    results = tuple(
        StudyResult(f"images.{name}", sentence, tuple(rows), plan.__dict__, legend)
        for name, sentence, rows, legend in tables
    )
    return results, single_images


def _paper_tables(cells: Sequence[Mapping[str, Any]]) -> tuple[NamedTable, NamedTable]:
    """Tables that compare the network of the paper with the published numbers and parameters."""
    paper_cells = [cell for cell in cells if cell["net"] == PAPER_NETWORK]
    rows = published_numbers.compare_with_paper(paper_cells)
    n_within = sum(row["within"] for row in rows)
    sentence = (
        f"Of the paper's {len(rows)} numbers {n_within} lie within the range over"
        f" {format_count(len(paper_cells), 'split')} of {PAPER_NETWORK}."
    )
    legend = "minimum, maximum: over the splits; within: whether the published number lies between them."
    parameter_sentence = f"Parameters of {PAPER_NETWORK} against truck, beside the paper's: estimate (standard error)."
    parameters = published_numbers.compare_parameters(paper_cells)
    return ("paper", sentence, rows, legend), ("paper.parameters", parameter_sentence, parameters, "")


def _parameter_table(cells: Sequence[Mapping[str, Any]]) -> NamedTable:
    """Parameters of the first split of each network, and the range of the slopes over the splits."""
    rows = split_results.parameter_table(cells)
    legend = (
        "First split, baseline truck; ±: standard error; minimum γ, maximum γ: over the splits, for the rows used for"
        " fitting."
    )
    return "parameters", split_results.summarize_slopes(rows), rows, legend


def _rejected_class_table(cells: Sequence[Mapping[str, Any]]) -> NamedTable:
    """How often each class is still rejected after recalibration."""
    sentence = (
        "Share of splits in which a class is still rejected at 5 % after recalibration, by the Wald test of its δ and γ"
        " with Holm's correction."
    )
    return (
        "left", sentence, split_results.rejected_class_table(cells), "Held-out rows; each class against truck.",
    )  # fmt: skip


def _min_prob_table(cells: Sequence[Mapping[str, Any]]) -> NamedTable:
    """Exact zeros and small values among the recalibrated probabilities of each method."""
    rows = split_results.min_prob_table(cells)
    softmax_zeros, histogram_zeros = (sum(row["zeros"] for row in rows if row["method"] == name) for name in WITH_ZEROS)
    sentence = (
        f"On the held-out rows, softmax values contain {format_count(softmax_zeros, 'exact zero')}, and those after"
        f" histogram binning {histogram_zeros:,}."
    )
    legend = (
        "First split, held-out rows. zeros: values that are exactly 0; outcomes at 0: number of them whose class was"
        f" observed; rows below: rows with a value below {MIN_PROB:g}, the smallest probability used."
    )
    return "floors", sentence, rows, legend


TOP_CLASSES = 5  # classes per image in the table and the figure


def image_rows(net: str, data: str | None, seed: int) -> tuple[tuple[Row, ...], str]:
    """Rows of single images before and after the MCLLO map of the first split, and a sentence about their search.

    One row per image and each of its most probable classes.
    """
    y, P = load_cifar10_softmax(net, data)
    learn, _ = load_cifar10_split(net, data, seed, 0)
    Q = fit(learn, "mcllo").predict_proba(P)
    alike = find_images(P)
    learned = set(split_rows(len(y), seed, 0)[0].tolist())
    rows = [
        {
            "image": image,
            "reason": reason,
            "label": CIFAR10_CLASSES[y[image]],
            "part": "fitting" if image in learned else "held out",
            "class": CIFAR10_CLASSES[j],
            "before": float(P[image, j]),
            "after": float(Q[image, j]),
        }
        for image, reason in choose_images(len(y), alike, Q)
        for j in np.argsort(-P[image], kind="stable")[:TOP_CLASSES]
    ]
    return tuple(rows), _describe_search(net, alike, Q)


def find_images(P: Array) -> Array:
    """Numbers of the images that are predicted as airplane with the published probability, to two digits.

    >>> find_images(np.array([[0.944, 0.056], [0.936, 0.064], [0.949, 0.051]])).tolist()
    [0, 1]
    """
    is_airplane = P.argmax(axis=1) == 0
    published = np.round(P.dtype.type(PUBLISHED_IMAGES[4526]), 2)
    return np.flatnonzero(is_airplane & (np.round(P[:, 0], 2) == published))


def choose_images(n: int, alike: Array, Q: Array) -> list[tuple[int, str]]:
    """Image numbers with the reason for showing them, of n images.

    These are the numbers in the paper, the second one also counted from one, and the image that is closest to the
    published probabilities. `alike` are the images of `find_images`, and Q (n, 10) recalibrated probabilities.
    """
    images = [(image, "the paper's number") for image in PUBLISHED_IMAGES if image < n]
    images += [(4525, "4526, numbered from 1")] if n > 4525 else []
    if len(alike):
        nearest = int(alike[np.abs(Q[alike, 0] - PUBLISHED_PROB_AFTER).argmin()])
        images.append((nearest, f"nearest to the paper's {PUBLISHED_IMAGES[4526]:.2f} → {PUBLISHED_PROB_AFTER:.2f}"))
    return images


def _describe_search(net: str, alike: Array, Q: Array) -> str:
    """In words, how many images have the published probability of airplane, and what MCLLO changes it to."""
    if not len(alike):
        return f"No image is predicted as airplane with {PUBLISHED_IMAGES[4526]:.2f} by {net}."
    after = Q[alike, 0]
    same = int((np.round(after, 2) == PUBLISHED_PROB_AFTER).sum())
    return (
        f"{len(alike)} images are predicted as airplane with {PUBLISHED_IMAGES[4526]:.2f} by {net}; MCLLO changes this"
        f" to {after.min():.2f} to {after.max():.2f}, in {same} of them the paper's {PUBLISHED_PROB_AFTER:.2f}."
    )


PALE = "#a9c4e2"
COLORS = dict(  # by label of the method
    zip(
        (method.label for method in ALL_METHODS),
        ("#222222", RED, "#e39a3b", "#5a9e5a", "#8a6fb0", BLUE, "#3aa6a6", "#c58ac0"),
        strict=True,
    )
)
SHOWN_METHODS = ("none", "MCLLO", "evidential (Xu) on p", "binning", "temperature on log p", "vector on log p")
PANELS = (("ECE change", "change of ECE"), ("gain", "gain in log loss (nats)"))  # column and label of the axis


def draw_tradeoff(rows: Sequence[Row], path: Path) -> None:
    """Draw the change of accuracy against the gain of calibration, one column per network, with standard errors."""
    nets = list(dict.fromkeys(row["network"] for row in rows))
    figure = make_figure((1.2 + 2.5 * len(nets), 6.2))
    grid = figure.subplots(2, len(nets), sharex=True, sharey="row", squeeze=False)
    for (name, label), panel_row in zip(PANELS, grid, strict=True):
        panel_row[0].set_ylabel(label, fontsize=9)
        for ax, net in zip(panel_row, nets, strict=True):
            remove_frame(ax)
            ax.axhline(0, color="#bbbbbb", lw=0.8)
            ax.axvline(0, color="#bbbbbb", lw=0.8)
            for row in rows:
                if row["network"] == net and row["method"] != "none" and np.isfinite(row[name]):
                    _draw_point(ax, row, name)
    for ax, net in zip(grid[0], nets, strict=True):
        ax.set_title(net, fontsize=10)
    for ax in grid[1]:
        ax.set_xlabel("change of accuracy (points)", fontsize=9)
    handles = [
        grid[0][0].plot([], [], "o", label=_legend_label(name, rows), **_marker_style(name))[0]
        for name in COLORS
        if name != "none"
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def _draw_point(ax: Any, row: Row, name: str) -> None:
    """Draw a method as a point with error bars: change of accuracy in points, and a column of PANELS."""
    x = 100 * row["accuracy change"]
    x_error = None if row["accuracy change ±"] is None else 100 * row["accuracy change ±"]
    ax.errorbar(
        x, row[name], xerr=x_error, yerr=row[f"{name} ±"], fmt="o", elinewidth=1, **_marker_style(row["method"])
    )


def _marker_style(method: str) -> dict[str, Any]:
    """The style of the mark of a method: a dot, or a ring for MCLLO with a ridge, which coincides with MCLLO."""
    ring = {"ms": 9, "mfc": "none"} if method == "MCLLO, ridge" else {"ms": 5}
    return {"color": COLORS[method], **ring}


def _legend_label(name: str, rows: Sequence[Row]) -> str:
    """The name of a method, with the number of networks whose log loss is infinite after it."""
    n_infinite = sum(row["method"] == name and not np.isfinite(row["gain"]) for row in rows)
    return f"{name} (infinite loss in {n_infinite} networks: not drawn below)" if n_infinite else name


def draw_single_images(rows: Sequence[Row], path: Path) -> None:
    """Draw the five most probable classes of each image, before and after recalibration."""
    images = list(dict.fromkeys(row["image"] for row in rows))
    figure = make_figure((3.4 * len(images), 3.4))
    for ax, image in zip(figure.subplots(1, len(images), squeeze=False)[0], images, strict=True):
        image_rows = [row for row in rows if row["image"] == image]
        positions = np.arange(len(image_rows))[::-1]
        for name, offset, color in (("before", 0.2, PALE), ("after", -0.2, BLUE)):
            values = [row[name] for row in image_rows]
            ax.barh(positions + offset, values, height=0.36, color=color, label=name)
            for y, value in zip(positions + offset, values, strict=True):
                ax.text(value + 0.015, y, f"{value:.2f}", va="center", fontsize=8)
        ax.set_yticks(positions, [row["class"] for row in image_rows], fontsize=9)
        ax.set(xlim=(0, 1.18), xticks=(0, 0.5, 1))
        ax.set_title(f"{image}, {image_rows[0]['label']}\n{image_rows[0]['reason']}", fontsize=9)
        remove_frame(ax)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_reliability(learn: Predictions, held_out: Predictions, path: Path) -> None:
    """Draw ten bins of the confidence of the held-out rows, before and after each method of the paper."""
    assert held_out.y is not None  # labels, no votes
    methods = {method.label: method for method in ALL_METHODS}
    figure = make_figure((13, 8.6))
    for ax, name in zip(figure.subplots(2, 3).ravel(), SHOWN_METHODS, strict=True):
        calibrator = fit(learn, methods[name].name, **methods[name].settings)
        after = Predictions(held_out.y, calibrator.predict_proba(held_out))
        draw(after, "reliability", lens="confidence", bins=10, ax=ax)
        ax.set_title(f"{name}: {ax.get_title().removeprefix('confidence: ')}", fontsize=10)
    save_figure(figure, path)
