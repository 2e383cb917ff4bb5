"""By what are the models put in order? Raw errors, errors with the noise taken off, and proper scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trueodds.api.verbs import measure
from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.data.predictions import Predictions
from trueodds_studies.data import stamp
from trueodds_studies.nets import net_errors
from trueodds_studies.nets.catalog import CIFAR10, groups, some

Models = Mapping[str, Predictions]


@dataclass(frozen=True)
class Measure:
    """An estimator with its lens and settings, and what kind of number it is."""

    kind: str  # raw: biased upward by noise; corrected: not, or hardly; score: proper, and not of calibration alone
    name: str
    lens: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def of(self, preds: Predictions) -> float:
        """The bare number."""
        return float(measure(preds, self.name, lens=self.lens, interval=None, **self.settings))


TREE = {"partition": "median-variance"}
MEASURES = {
    "ECE, 15 bins": Measure("raw", "ece", "confidence", {"bins": 15}),
    "ECE, 100 bins": Measure("raw", "ece", "confidence", {"bins": 100}),
    "ECE, equal mass": Measure("raw", "ece", "confidence", {"partition": "equal-mass"}),
    "ECE, tree": Measure("raw", "ece", "confidence", TREE),
    "MCE, 15 bins": Measure("raw", "mce", "confidence", {"bins": 15}),
    "class-wise, 15 bins": Measure("raw", "ece", "classwise", {"bins": 15}),
    "3 groups, tree": Measure("raw", "ece", groups(10), TREE),
    "canonical, grid": Measure("raw", "ece", "canonical", {"partition": "uniform", "bins": 10}),
    "canonical, tree": Measure("raw", "ece", "canonical", TREE),
    "canonical, tree, squared": Measure("raw", "ece", "canonical", {**TREE, "distance": "sq-euclidean"}),
    "debiased L2": Measure("corrected", "debiased_l2", "confidence"),
    "debiased L2, class-wise": Measure("corrected", "debiased_l2", "classwise"),
    "smooth ECE": Measure("corrected", "smece", "confidence"),
    "KS": Measure("corrected", "ks", "confidence"),
    "SKCE, blocks": Measure(
        "corrected", "skce", "canonical", {"form": "block", "block_size": 100}
    ),  # in all rows as in halves
    "Brier": Measure("score", "brier", "canonical"),
    "log loss": Measure("score", "log_loss", "canonical"),
    "spherical": Measure("score", "spherical", "canonical"),
}
FIRST = "ECE, 15 bins"  # what most papers print
QUICK_MEASURES = (FIRST, "canonical, tree", "debiased L2", "Brier")  # of a quick study


def models(names: tuple[str, ...], data: str | None, rows: int | None = None, seed: int = 0) -> dict[str, Predictions]:
    """The nets on the same rows. TO803 where their labels say that the rows are not the same."""
    nets = {name: CIFAR10[name].predictions(data) for name in names}
    first, *others = nets
    want = nets[first].y
    assert want is not None  # labels, no votes
    for name in others:
        own = nets[name].y
        assert own is not None
        if len(own) != len(want) or (own != want).any():
            differ = f"{int((own != want).sum()):,} of {len(own):,}" if len(own) == len(want) else f"{len(own):,} rows:"
            raise InputError(
                "TO803",
                "The nets do not speak of the same rows.",
                f"{differ} labels of {CIFAR10[name].file} differ from those of {CIFAR10[first].file}",
                "All must have the same items in the same order; docs/studies.md says which.",
            )
    return {name: some(preds, rows, seed) for name, preds in nets.items()}


def stamps(names: tuple[str, ...], data: str | None) -> dict[str, str]:
    """The files of the nets, with their stamps."""
    return {name: stamp(name, data) for name in dict.fromkeys(CIFAR10[net].file for net in names)}


def entrants(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names themselves; an unknown net or one alone is an InputError."""
    for name in names:
        if name not in CIFAR10:
            raise InputError("TO201", "There is no net of that name.", repr(name), near(name, CIFAR10))
    if len(set(names)) < 2:
        raise InputError("TO205", "A comparison needs two models.", ", ".join(names), "Name a second net.")
    return tuple(dict.fromkeys(names))


def right(nets: Models) -> dict[str, dict[str, float]]:
    """How often each net is right, and how sure it is on average."""
    return {
        name: dict(zip(("accuracy", "confidence"), net_errors.right(preds), strict=True))
        for name, preds in nets.items()
    }
