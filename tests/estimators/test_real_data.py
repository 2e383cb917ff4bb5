"""Do real predictions give the accuracy and ECE that their table of provenance prints?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from trueodds import Predictions
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.ranked import accuracy

pytestmark = pytest.mark.reference


@cache
def arrays(name: str) -> dict[str, Array]:
    """A file read once: the arrays of an npz, the columns of a table."""
    if name.endswith(".npz"):
        return dict(reference.data(name))
    table = reference.data(name)
    return {column: table[column].to_numpy() for column in table.column_names}


def logits(name: str, split: str = "test", labels: str | None = None) -> Predictions:
    dataset = arrays(f"{name}.npz")
    return Predictions.from_logits(dataset[labels or f"labels_{split}"], dataset[f"logits_{split}"])


def column(name: str, y: str, p: str) -> Predictions:
    dataset = arrays(f"{name}.parquet")
    return Predictions(dataset[y], dataset[p])


def tcal(net: str) -> Predictions:
    dataset = arrays("tcal_imagenet_top1.npz")
    return Predictions.from_confidence(dataset[f"conf_{net}"], dataset[f"correct_{net}"])


def soccer() -> Predictions:
    dataset = arrays("fte_soccer.parquet")
    return Predictions(dataset["label"], np.stack([dataset[c] for c in ("prob1", "probtie", "prob2")], axis=1))


def plain(name: str, probs: str) -> Predictions:
    dataset = arrays(f"{name}.npz")
    return Predictions(dataset["labels"], dataset[probs])


# The table of shared data/README.md: accuracy and ECE15 as printed there (binary tables: of the positive class).
CASES: dict[str, tuple[Any, str, float | None, str]] = {
    "aigen_cifar10_resnet50": (lambda: logits("aigen_cifar10_resnet50"), "confidence", 0.9500, "0.0182"),
    "aigen_cifar10_resnet50 val": (lambda: logits("aigen_cifar10_resnet50", "val"), "confidence", 0.9476, "0.0194"),
    "aigen_focal": (lambda: logits("aigen_focal_cifar10_wide_resnet"), "confidence", 0.9599, "0.0156"),
    "aigen_focal val": (lambda: logits("aigen_focal_cifar10_wide_resnet", "val"), "confidence", 0.9602, "0.0176"),
    "aigen_cifar100": (lambda: logits("aigen_cifar100_resnet110"), "confidence", 0.7490, "0.0788"),
    "aigen_cifar100 val": (lambda: logits("aigen_cifar100_resnet110", "val"), "confidence", 0.7524, "0.0807"),
    "ferrer_pathmnist": (lambda: logits("ferrer_pathmnist_resnet50"), "confidence", 0.9075, "0.0717"),
    "ferrer_adrenalmnist": (lambda: logits("ferrer_adrenalmnist_resnet50"), "positive", 0.7852, "0.1204"),
    "ferrer_adrenalmnist top": (lambda: logits("ferrer_adrenalmnist_resnet50"), "confidence", None, "0.1108"),
    "ferrer_agnews": (lambda: logits("ferrer_agnews_gpt2"), "confidence", 0.4153, "0.1844"),
    "plambda": (lambda: plain("plambda_cifar10_vgg16", "probs"), "confidence", 0.9359, "0.0398"),
    "psr_emotion": (lambda: logits("psr_emotion_final", "tst"), "confidence", 0.5368, "0.2609"),
    "cifar10h": (lambda: plain("cifar10h", "probs"), "confidence", 0.9921, "0.0377"),
    "chaosnli gold": (lambda: logits("chaosnli_snli", "roberta_base_0", "gold"), "confidence", 0.7246, "0.1605"),
    "chaosnli majority": (
        lambda: logits("chaosnli_snli", "roberta_base_0", "majority"),
        "confidence",
        0.7384,
        "0.1470",
    ),
    "fte_soccer": (soccer, "confidence", 0.5069, "0.0065"),
    "brcal_hockey": (lambda: column("brcal_hockey", "y", "x"), "positive", 0.6025, "0.0416"),
    "brcal_hockey rand": (lambda: column("brcal_hockey", "y", "rand"), "positive", None, "0.128"),
    "precip ENS": (lambda: column("precip_niamey_2016", "obs", "ENS"), "positive", 0.6522, "0.2742"),
    "precip Logistic": (lambda: column("precip_niamey_2016", "obs", "Logistic"), "positive", None, "0.112"),
    "precip EMOS": (lambda: column("precip_niamey_2016", "obs", "EMOS"), "positive", None, "0.084"),
    "precip EPC": (lambda: column("precip_niamey_2016", "obs", "EPC"), "positive", None, "0.061"),
    "ecology GAM": (lambda: column("ecology_tree_species", "OBSERVED", "GAM"), "positive", 0.9008, "0.0350"),
    "ecology See5": (lambda: column("ecology_tree_species", "OBSERVED", "See5"), "positive", None, "0.026"),
    "ecology SGB": (lambda: column("ecology_tree_species", "OBSERVED", "SGB"), "positive", None, "0.016"),
    "adult": (lambda: column("adult_rf_predictions", "y", "p"), "positive", 0.8472, "0.0465"),
    "tcal resnet152": (lambda: tcal("resnet152"), "confidence", 0.7833, "0.0499"),
    "tcal densenet161": (lambda: tcal("densenet161"), "confidence", 0.7711, "0.0567"),
    "tcal efficientnet_b7": (lambda: tcal("efficientnet_b7"), "confidence", 0.7393, "0.0282"),
    "widmann resnet18": (lambda: plain("widmann_cifar10_4nets", "probs_resnet18"), "confidence", 0.9171, "0.0535"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_printed_accuracy_and_ece(name: str) -> None:
    build, lens, right, printed = CASES[name]
    preds = build()
    (view,) = as_lens(lens).views(preds)
    half = 0.5 * 10.0 ** -len(printed.split(".")[1])  # of the last digit printed
    assert float(BinnedError()(view)) == pytest.approx(float(printed), abs=half * 1.0001)
    if right is not None:
        assert accuracy(preds) == pytest.approx(right, abs=0.5001e-4)


def test_the_four_nets_lie_in_the_printed_range() -> None:
    dataset = arrays("widmann_cifar10_4nets.npz")
    every = [Predictions(dataset["labels"], dataset[key]) for key in dataset if key.startswith("probs_")]
    ece = [float(BinnedError()(as_lens("confidence").views(preds)[0])) for preds in every]
    assert len(every) == 4
    assert all(0.885 <= accuracy(preds) <= 0.937 for preds in every)
    assert all(0.0137 <= value <= 0.0659 for value in ece)


@pytest.mark.parametrize("net", ["densenet121", "resnet18"])
@pytest.mark.parametrize("bins", [10, 15])
def test_the_top_label_error_of_two_nets_to_nine_digits(net: str, bins: int) -> None:
    # Reference: golden anchors, cifar_lenses (from decimal text: half a float32 ulp below 1 is 3e-8)
    truth = reference.golden("anchors/golden.json")["analytic_and_literal"]["cifar_lenses"][net]
    from trueodds.binning.uniform import Uniform

    (view,) = as_lens("confidence").views(plain("widmann_cifar10_4nets", f"probs_{net}"))
    assert float(BinnedError(Uniform(bins))(view)) == pytest.approx(
        truth[f"top_label_ece_{bins}_equal_width"], abs=2**-25
    )


def test_heavy_ties_and_exact_zeros_are_pooled_whole_in_real_data() -> None:
    # adult_rf_predictions: 101 distinct scores, a third exact 0 or 1; row order must not matter to any digit pattern
    from trueodds.binning.equal_mass import EqualMass

    dataset = arrays("adult_rf_predictions.parquet")
    order = np.random.default_rng(0).permutation(len(dataset["y"]))
    (a,) = as_lens("positive").views(Predictions(dataset["y"], dataset["p"]))
    (b,) = as_lens("positive").views(Predictions(dataset["y"][order], dataset["p"][order]))
    for bins in (10, 15, 50):
        estimator = BinnedError(EqualMass(bins))
        assert float(estimator(a)) == pytest.approx(float(estimator(b)), rel=1e-12)
        index = estimator.bin_sums(a).index
        assert all(len(np.unique(index[a.p == p])) == 1 for p in np.unique(a.p))
