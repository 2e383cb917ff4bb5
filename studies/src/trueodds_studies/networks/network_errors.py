"""Calibration errors of one network by partition and distance, and the published values beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.api.test import test
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
"""Ten equal parts of each probability, and trees that split at the median of the class with the largest variance."""

DISTANCES = ("tv", "sq-euclidean")


def network_lenses(net: StoredNetwork) -> dict[str, str]:
    """The lenses: one-dimensional, two-dimensional, and all classes."""
    by_dimension = {"confidence": "confidence"}
    if net.has_class_probs and net.classes > 3:
        by_dimension["groups"] = groups_lens(net.classes)
    if net.has_class_probs:
        by_dimension["canonical"] = "canonical"
    return by_dimension


def error_rows(net: StoredNetwork, preds: Predictions, resamples: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """A row per lens, partition and distance: the error, its interval, its noise floor, and p."""
    rows = []
    for dimension, lens in network_lenses(net).items():
        for bins, settings in PARTITIONS.items():
            for distance in DISTANCES:
                own = {"lens": lens, "distance": distance, **settings}
                answer = measure(preds, "ece", resamples=resamples, rng=seed, **own)
                verdict = test(preds, "consistency", statistic="ece", resamples=redraws, rng=seed, **own)
                rows.append(
                    {
                        "lens": dimension,
                        "bins": bins,
                        "distance": distance,
                        "value": answer.value,
                        "low": None if answer.interval is None else answer.interval.low,
                        "high": None if answer.interval is None else answer.interval.high,
                        "floor": answer.noise_floor,
                        "p": verdict.pvalue,
                    }
                )
    return rows


def count_outside_bars(preds: Predictions, level: float) -> dict[str, dict[str, int]]:
    """Number of bins of the confidence outside the bars of a calibrated model, with ten bins and with a tree."""
    counts = {}
    for label, bins in (("uniform", "uniform 10"), ("tree", "tree, 100 rows")):
        panels = draw(preds, "reliability", lens="confidence", level=level, **PARTITIONS[bins]).panels
        counts[label] = {
            name: int(panels[column][0]) for name, column in (("outside", "bins_outside"), ("bins", "bins"))
        }
    return counts


def frequent_cell_errors(net: StoredNetwork, preds: Predictions) -> dict[str, Any] | None:
    """The mean distance in the three fullest of 25 cells of the triangle, and in the others, weighted by rows.

    `beyond` is the number of cells with a significant deviation, `beyond there` that among the three fullest.
    """
    if not (net.has_class_probs and net.classes >= 3):
        return None
    lens = "canonical" if net.classes == 3 else groups_lens(net.classes)
    table = draw(preds, "simplex", lens=lens, partition="simplex-grid", bins=5).table
    order = np.argsort(-table["share"], kind="stable")
    full, rest = order[:3], order[3:]
    if not len(rest):
        return None
    there, elsewhere = (
        float((table["share"][part] * table["distance"][part]).sum() / table["share"][part].sum())
        for part in (full, rest)
    )
    beyond = {"beyond": int(table["beyond"].sum()), "beyond there": int(table["beyond"][full].sum())}
    return {"there": there, "elsewhere": elsewhere, **beyond, "cells": len(order)}


def accuracy_and_confidence(preds: Predictions) -> tuple[float, float]:
    """Accuracy and mean confidence."""
    (view,) = as_lens("confidence").views(preds)
    return float(view.y.mean()), float(view.p.mean())


# The authors' own program on these very predictions:
# Widmann, Lindsten & Zachariah (2019), all classes, total variation, github.com/devmotion/CalibrationPaper,
# experiments/src/PyTorch-CIFAR10 (ten bins of each probability; trees of 100 rows).
# (ten bins of each probability; trees of 100 rows).
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
    """Statements of the paper with our results, then published numbers with ours."""
    statements = [("the importance of the binning scheme", _describe_schemes(cells))]
    if any(a is not b and NETWORKS[a["net"]].task == NETWORKS[b["net"]].task for a in cells for b in cells):
        statements.append(("(the same)", _describe_orders(cells)))
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
    return tuple({"the papers": first, "here": second} for first, second in statements)


def find_error(cell: Row, lens: str, bins: str, distance: str = "tv") -> float:
    """One error of a network."""
    for row in cell["errors"]:
        if (row["lens"], row["bins"], row["distance"]) == (lens, bins, distance):
            return float(row["value"])
    raise LookupError(f"{cell['net']} has no {lens}, {bins}, {distance}")


def _describe_schemes(cells: Sequence[Row]) -> str:
    """Effect of the bins on the error."""
    phrases = []
    for lens in ("confidence", "groups", "canonical"):
        lens_cells = [cell for cell in cells if any(row["lens"] == lens for row in cell["errors"])]
        if lens_cells:
            ratios = [
                find_error(cell, lens, "tree, 10 rows") / find_error(cell, lens, "uniform 10") for cell in lens_cells
            ]
            phrases.append(f"{lens}: {format_range(ratios, 2)}")
    return f"error with a tree of 10 rows divided by that with ten uniform bins, total variation: {'; '.join(phrases)}"


def _describe_orders(cells: Sequence[Row]) -> str:
    """Number of pairs of networks of one task whose order depends on the bins."""
    pairs = turned = 0
    for i, one in enumerate(cells):
        for other in cells[:i]:
            if NETWORKS[one["net"]].task == NETWORKS[other["net"]].task:
                signs = {
                    find_error(one, "confidence", bins) < find_error(other, "confidence", bins)
                    for bins in ("uniform 10", "tree, 100 rows", "tree, 10 rows")
                }
                pairs, turned = pairs + 1, turned + (len(signs) > 1)
    return (
        f"{turned} of {format_count(pairs, 'pair')} of networks of one task change the order of their confidence errors"
        " with the bins"
    )


def _describe_frequent(cells: Sequence[Row]) -> str:
    """Deviation in the corner with most predictions, compared with the others."""
    corners = [cell["frequent"] for cell in cells if cell["frequent"] is not None]
    if not corners:
        return "no network has three outcomes or more"
    there, elsewhere = ([corner[name] for corner in corners] for name in ("there", "elsewhere"))
    less = sum(a < b for a, b in zip(there, elsewhere, strict=True))
    strays, full = (sum(corner[name] for corner in corners) for name in ("beyond", "beyond there"))
    return (
        f"in the three fullest of 25 cells the mean distance is {format_range(there)}, in the others"
        f" {format_range(elsewhere)}; smaller there in {less} of {format_count(len(corners), 'net')}; of"
        f" {format_count(strays, 'cell')} with a significant deviation, {full} are among the fullest"
    )


def _describe_outside(cells: Sequence[Row]) -> str:
    phrases = []
    for bins in ("uniform", "tree"):
        shares = [cell["outside"][bins]["outside"] / cell["outside"][bins]["bins"] for cell in cells]
        phrases.append(f"{bins} {format_range((100 * share for share in shares), 0)} %")
    return f"bins outside the 90 % bars, by network: {', '.join(phrases)}"


def _describe_bars(cells: Sequence[Row]) -> str:
    out, bins = (np.sum([cell["outside"]["tree"][name] for cell in cells]) for name in ("outside", "bins"))
    return f"{int(out)} of {format_count(int(bins), 'bin')} of the trees are outside"
