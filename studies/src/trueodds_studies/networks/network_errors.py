"""Calibration errors of a network by lens, partition and distance, and comparisons with published statements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.network_predictions import NETWORKS, StoredNetwork, groups_lens
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_count, format_range

PARTITIONS: dict[str, dict[str, Any]] = {
    "uniform 10": {"partition": "uniform", "bins": 10},
    "tree, 100 rows": {"partition": "median-variance", "min_size": 100},
    "tree, 10 rows": {"partition": "median-variance", "min_size": 10},
}
"""Ten bins of each probability, and trees that split at the median of the probability with the largest variance."""

DISTANCES = ("tv", "sq-euclidean")


def network_lenses(net: StoredNetwork) -> dict[str, str]:
    """The lenses that a network supports, by their name in the tables: `confidence`, `groups` and `canonical`."""
    lenses = {"confidence": "confidence"}
    if net.has_class_probs and net.classes > 3:
        lenses["groups"] = groups_lens(net.classes)
    if net.has_class_probs:
        lenses["canonical"] = "canonical"
    return lenses


def error_rows(net: StoredNetwork, preds: Predictions, resamples: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """One row per lens, partition and distance: error with interval and noise floor, and p of the consistency test."""
    rows = []
    for lens_name, lens in network_lenses(net).items():
        for bins, settings in PARTITIONS.items():
            for distance in DISTANCES:
                estimand = {"lens": lens, "distance": distance, **settings}
                answer = measure(preds, "ece", resamples=resamples, rng=seed, **estimand)
                verdict = test(preds, "consistency", statistic="ece", resamples=redraws, rng=seed, **estimand)
                rows.append(
                    {
                        "lens": lens_name,
                        "bins": bins,
                        "distance": distance,
                        "value": answer.value,
                        "low": None if answer.interval is None else answer.interval.low,
                        "high": None if answer.interval is None else answer.interval.high,
                        "noise floor": answer.noise_floor,
                        "p": verdict.pvalue,
                    }
                )
    return rows


def count_outside_bars(preds: Predictions, level: float) -> dict[str, dict[str, int]]:
    """Number of bins of the confidence, and of those outside the bars of a calibrated model, for two partitions."""
    counts = {}
    for label, bins in (("uniform", "uniform 10"), ("tree", "tree, 100 rows")):
        panels = draw(preds, "reliability", lens="confidence", level=level, **PARTITIONS[bins]).panels
        counts[label] = {"outside": int(panels["bins_outside"][0]), "bins": int(panels["bins"][0])}
    return counts


def frequent_cell_errors(net: StoredNetwork, preds: Predictions) -> dict[str, Any] | None:
    """Mean distance in the three of 25 cells of the simplex with the most rows, and in the others, weighted by rows.

    `beyond` is the number of cells with a significant deviation, and `beyond there` that among the three. None if the
    network has fewer than three classes or all rows are in three cells.
    """
    if not (net.has_class_probs and net.classes >= 3):
        return None
    lens = "canonical" if net.classes == 3 else groups_lens(net.classes)
    table = draw(preds, "simplex", lens=lens, partition="simplex-grid", bins=5).table
    order = np.argsort(-table["share"], kind="stable")
    frequent, others = order[:3], order[3:]
    if not len(others):
        return None

    def mean_distance(cells: Array) -> float:
        """Mean distance of some cells, weighted by their numbers of rows."""
        share = table["share"][cells]
        return float((share * table["distance"][cells]).sum() / share.sum())

    return {
        "there": mean_distance(frequent),
        "elsewhere": mean_distance(others),
        "beyond": int(table["beyond"].sum()),
        "beyond there": int(table["beyond"][frequent].sum()),
        "cells": len(order),
    }


def accuracy_and_confidence(preds: Predictions) -> tuple[float, float]:
    """Accuracy and mean confidence."""
    (view,) = as_lens("confidence").views(preds)
    return float(view.y.mean()), float(view.p.mean())


# Widmann, Lindsten & Zachariah (2019) for the same predictions: all classes, total variation, ten bins of each
# probability, and trees of 100 rows. Source: github.com/devmotion/CalibrationPaper, experiments/src/PyTorch-CIFAR10.
PUBLISHED_ERRORS = {
    "densenet121": {"uniform 10": 0.06607267260685959, "tree, 100 rows": 0.029532869835646354},
    "inception_v3": {"uniform 10": 0.06622328174328848, "tree, 100 rows": 0.02741172314725122},
    "resnet18": {"uniform 10": 0.07488154767161405, "tree, 100 rows": 0.03644622574154901},
    "vgg16_bn": {"uniform 10": 0.06611851748458285, "tree, 100 rows": 0.029127032299151583},
}
PAPER_LEGEND = """Quoted or shortened from section 5.2 of Vaicenavicius et al. (2019), whose LeNet, DenseNet, and ResNet
are not the networks used here; the numbers are from the program of Widmann, Lindsten, and Zachariah (2019) for these
predictions."""


def compare_with_papers(cells: Sequence[Row]) -> tuple[Row, ...]:
    """Statements of Vaicenavicius et al. (2019), and numbers of Widmann et al. (2019), with our results."""
    statements = [("the importance of the binning scheme", _describe_schemes(cells))]
    if _pairs_of_one_task(cells):
        statements.append(("(same statement)", _describe_orders(cells)))
    statements.append(("in regions with frequent predictions the deviation is small", _describe_frequent(cells)))
    statements.append(
        (
            "one-dimensional diagrams with data-dependent bins do not seem to support reliability",
            _describe_outside(cells),
        )
    )
    statements.append(
        (
            "5th and 95th percentiles in consistency resamples: one bin in ten outside if calibrated",
            _describe_bars(cells),
        )
    )
    for cell in cells:
        for bins, printed in PUBLISHED_ERRORS.get(cell["net"], {}).items():
            ours = find_error(cell, "canonical", bins)
            statements.append((f"{cell['net']}, all classes, {bins}: {printed:.6f}", f"{ours:.6f}"))
    return tuple({"published": first, "our result": second} for first, second in statements)


def find_error(cell: Row, lens: str, bins: str, distance: str = "tv") -> float:
    """The error of a network with these settings."""
    for row in cell["errors"]:
        if (row["lens"], row["bins"], row["distance"]) == (lens, bins, distance):
            return float(row["value"])
    raise LookupError(f"{cell['net']} has no {lens}, {bins}, {distance}")


def _describe_schemes(cells: Sequence[Row]) -> str:
    """In words, the ratio of errors with a tree to those with ten uniform bins, by lens."""
    phrases = []
    for lens in ("confidence", "groups", "canonical"):
        lens_cells = [cell for cell in cells if any(row["lens"] == lens for row in cell["errors"])]
        if lens_cells:
            ratios = [
                find_error(cell, lens, "tree, 10 rows") / find_error(cell, lens, "uniform 10") for cell in lens_cells
            ]
            phrases.append(f"{lens}: {format_range(ratios, 2)}")
    return f"error with a tree of 10 rows divided by that with ten uniform bins, total variation: {'; '.join(phrases)}"


def _pairs_of_one_task(cells: Sequence[Row]) -> list[tuple[Row, Row]]:
    """All pairs of networks for the same task."""
    return [
        (first, second)
        for first, second in combinations(cells, 2)
        if NETWORKS[first["net"]].task == NETWORKS[second["net"]].task
    ]


def _describe_orders(cells: Sequence[Row]) -> str:
    """In words, the number of pairs of networks of one task whose order depends on the bins."""
    pairs = _pairs_of_one_task(cells)
    n_reversed = 0
    for first, second in pairs:
        first_is_smaller = {
            find_error(first, "confidence", bins) < find_error(second, "confidence", bins) for bins in PARTITIONS
        }
        n_reversed += len(first_is_smaller) > 1
    return (
        f"{n_reversed} of {format_count(len(pairs), 'pair')} of networks of one task change the order of their"
        " confidence errors with the bins"
    )


def _describe_frequent(cells: Sequence[Row]) -> str:
    """In words, the mean distance in the three cells with the most rows, compared with the others."""
    simplices = [cell["frequent"] for cell in cells if cell["frequent"] is not None]
    if not simplices:
        return "no network has three outcomes or more"
    there = [simplex["there"] for simplex in simplices]
    elsewhere = [simplex["elsewhere"] for simplex in simplices]
    n_smaller = sum(a < b for a, b in zip(there, elsewhere, strict=True))
    n_significant = sum(simplex["beyond"] for simplex in simplices)
    n_frequent = sum(simplex["beyond there"] for simplex in simplices)
    return (
        f"in the three of 25 cells with the most predictions, the mean distance is {format_range(there)}, in the others"
        f" {format_range(elsewhere)}; smaller in these three for {n_smaller} of"
        f" {format_count(len(simplices), 'network')}; of {format_count(n_significant, 'cell')} with a significant"
        f" deviation, {n_frequent} are among these three"
    )


def _describe_outside(cells: Sequence[Row]) -> str:
    """In words, the share of bins outside the bars, by partition, over the networks."""
    phrases = []
    for bins in ("uniform", "tree"):
        shares = [cell["outside"][bins]["outside"] / cell["outside"][bins]["bins"] for cell in cells]
        phrases.append(f"{bins} {format_range((100 * share for share in shares), 0)} %")
    return f"bins outside the 90 % bars, by network: {', '.join(phrases)}"


def _describe_bars(cells: Sequence[Row]) -> str:
    """In words, the number of bins of the trees outside the bars, of all networks together."""
    n_outside = sum(cell["outside"]["tree"]["outside"] for cell in cells)
    n_bins = sum(cell["outside"]["tree"]["bins"] for cell in cells)
    return f"{n_outside} of {format_count(n_bins, 'bin')} of the trees are outside"
