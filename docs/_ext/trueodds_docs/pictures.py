"""A picture of each diagram, drawn with synthetic predictions."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import trueodds as to

DOTS_PER_INCH = 130


def two_classes(rng: np.random.Generator, n: int = 1500, slope: float = 1.6, shift: float = 0.3) -> to.Predictions:
    """Return overconfident predictions of two classes, at four sites."""
    logit = rng.normal(0.0, 1.3, n)
    outcomes = rng.random(n) < 1 / (1 + np.exp(-logit))
    site = np.resize(["north", "east", "south", "west"], n)
    return to.Predictions(outcomes.astype(int), 1 / (1 + np.exp(-(slope * logit + shift))), group={"site": site})


def several_classes(rng: np.random.Generator, k: int, n: int = 2000, power: float = 1.8) -> to.Predictions:
    """Return overconfident predictions of k classes."""
    truth = rng.dirichlet([1.0] * k, n)
    outcomes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = truth**power
    return to.Predictions(outcomes, sharp / sharp.sum(axis=1, keepdims=True))


def two_models(rng: np.random.Generator) -> Mapping[str, to.Predictions]:
    """Return predictions before and after recalibration with other rows."""
    preds = two_classes(rng, 3000)
    held_out = preds[1500:]
    return {"before": held_out, "after": to.fit(preds[:1500], "temperature").recalibrate(held_out)}


def epochs(rng: np.random.Generator, n: int = 1000) -> Mapping[str, to.Predictions]:
    """Return predictions that become more confident with each epoch, and from some epoch on too confident."""
    logit = rng.normal(0.0, 2.0, n)
    outcomes = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    noise = rng.normal(0.0, 1.0, n)
    predictions = {}
    for epoch in range(1, 16):
        learned = logit * (1 - np.exp(-epoch / 3)) + noise / (1 + epoch)
        predictions[str(epoch)] = to.Predictions(outcomes, 1 / (1 + np.exp(-learned * (0.7 + 0.09 * epoch))))
    return predictions


def drifting_monitor(rng: np.random.Generator) -> to.Monitor:
    """Return a monitor of four months of predictions, whose events become more frequent in the third one."""
    day = np.repeat(np.arange("2026-01-01", "2026-05-01", dtype="datetime64[D]"), 300)
    risk = rng.beta(2, 18, day.size)
    event = rng.random(day.size) < np.where(day < np.datetime64("2026-03-01"), risk, 1.4 * risk)
    outcome = np.where(day < np.datetime64("2026-04-17"), event, np.nan)  # recent outcomes are not known yet
    return to.Monitor(horizon="14d").update(to.Predictions(outcome, risk), time=day, as_of="2026-05-01")


def draw_picture(name: str, path: Path) -> None:
    """Draw a diagram with predictions that suit it, and save it as PNG with 256 colors."""
    from PIL import Image

    rng = np.random.default_rng(0)
    if name in {"comparison", "decision_curve", "murphy"}:
        diagram = to.draw(two_models(rng), name)
    elif name == "training":
        diagram = to.draw(epochs(rng), name)
    elif name in {"simplex", "mcllo_parameters"}:
        diagram = to.draw(several_classes(rng, 3 if name == "simplex" else 5), name)
    elif name == "monitor":
        diagram = to.draw(drifting_monitor(rng), name)
    elif name == "tetrahedron":
        diagram = to.draw(several_classes(rng, 4), name)
    elif name in {"confidence_histogram", "selective_risk"}:
        diagram = to.draw(several_classes(rng, 5), name)
    else:
        diagram = to.draw(two_classes(rng), name)
    buffer = io.BytesIO()
    diagram.draw().savefig(buffer, format="png", dpi=DOTS_PER_INCH, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, optimize=True)


def draw_pictures(docs: Path, names: tuple[str, ...]) -> None:
    """Draw the diagrams into the folder of their reference pages, unless the picture is newer than the package."""
    changed = max(file.stat().st_mtime for file in Path(to.__file__).parent.rglob("*.py"))
    for name in names:
        path = docs / "reference" / "diagrams" / f"{name}.png"
        if not path.exists() or path.stat().st_mtime < changed:
            draw_picture(name, path)
