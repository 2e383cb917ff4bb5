"""Draw every diagram with real predictions into docs/gallery, and write the page docs/gallery.md."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import trueodds as to
from trueodds.diagrams.base import Diagram
from trueodds_studies.common.data_files import load_npz, load_parquet

CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
EMOS_AND_ENS = '{"EMOS": rain["EMOS"], "ENS": rain["ENS"]}'
GROUPS = "groups:[[0,1,2],[3,4,5],[6,7,8,9]]"
DOTS = 120  # per inch: 768 pixels wide

HEAD = """# Gallery

This page shows every diagram with real predictions. `make gallery` generates it. A diagram is an immutable table:
`.frame()` returns all numbers shown, `.draw(ax)` draws on existing axes, `.less("strip")` omits a layer, and
`.save("x.svg")` writes SVG, PNG, or PDF. All diagrams accept `title=`, `figsize=`, and `dpi=`.
[diagrams.md](diagrams.md) describes each diagram and its settings.

The text of each figure states its result in words. The predictions are:

- `vgg16` and the four `nets`: CIFAR-10 classifiers (10,000 test images)
- `hockey`: forecasts of 868 ice hockey games (home win or not)
- `rain`: four kinds of rain forecasts for the same 92 days
- `soccer`: forecasts of 32,669 matches (win, tie, loss)
- `emotion`: a classifier of emotions in speech (5,473 clips, four classes)
- `adult`: the votes of a random forest on whether 16,281 incomes are high
- `recalibrated`: `vgg16[5000:]` after temperature scaling that was fitted on `vgg16[:5000]`
- `a/1` to `b/30`: two small networks for handwritten digits, `a` and `b`, after each of 30 training epochs
"""


@dataclass(frozen=True)
class Picture:
    """One figure of the gallery: its name, the call shown on the page, and a function that returns the diagram."""

    name: str
    call: str
    draw: Callable[[], Diagram]


def main(data: str, docs: str) -> None:
    """Draw all figures with the files in `data`, and write them and the page to the folder `docs`."""
    folder = Path(docs) / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    page, chapter = [HEAD], ""
    for heading, picture in pictures(data):
        begun = time.perf_counter()
        diagram = picture.draw()
        made = time.perf_counter()
        write(diagram, folder / f"{picture.name}.png")
        print(f"{picture.name:32} {made - begun:6.2f} s made {time.perf_counter() - made:6.2f} s drawn", flush=True)
        if heading != chapter:
            page.append(f"## {heading}\n")
            chapter = heading
        page.append(f"`{picture.call}`\n\n![{alt(diagram)}](gallery/{picture.name}.png)\n")
    (Path(docs) / "gallery.md").write_text("\n".join(page), encoding="utf-8")


def write(diagram: Diagram, path: Path) -> None:
    """Save as a PNG with 256 colors, which is a third of the size."""
    out = io.BytesIO()
    diagram.draw().savefig(out, format="png", dpi=DOTS, facecolor="white")
    out.seek(0)
    Image.open(out).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def alt(diagram: Diagram) -> str:
    """Alternative text of the image: headline and summary."""
    return " ".join([diagram.default_title(), diagram.summary]).replace("\n", " ").replace("[", "(").replace("]", ")")


def pictures(data: str) -> Iterator[tuple[str, Picture]]:
    """Chapters and figures in the order of the page."""
    vgg = load_npz("plambda_cifar10_vgg16.npz", data)
    vgg16 = to.Predictions(vgg["labels"], vgg["probs"], classes=range(10))
    named = to.Predictions(np.array(CIFAR)[vgg["labels"]], vgg["probs"], classes=CIFAR)
    nets = load_npz("widmann_cifar10_4nets.npz", data)
    four = {key.removeprefix("probs_"): to.Predictions(nets["labels"], nets[key]) for key in nets if key != "labels"}
    ice = load_parquet("brcal_hockey.parquet", data)
    hockey = to.Predictions(ice["y"].astype(int), ice["x"])
    days = load_parquet("precip_niamey_2016.parquet", data)
    rain = {name: to.Predictions(days["obs"].astype(int), days[name]) for name in ("Logistic", "EMOS", "ENS", "EPC")}
    games = load_parquet("fte_soccer.parquet", data)
    soccer = to.Predictions(
        np.array(["win", "tie", "loss"])[games["label"]],
        np.stack([games[name] for name in ("prob1", "probtie", "prob2")], axis=1),
        classes=("win", "tie", "loss"), sum_tolerance=1e-3,
    )  # fmt: skip
    speech = load_npz("psr_emotion_final.npz", data)
    emotion = to.Predictions.from_logits(speech["labels_tst"], speech["logits_tst"])
    votes = load_parquet("adult_rf_predictions.parquet", data)
    adult = to.Predictions(votes["y"].astype(int), votes["p"])

    def one(
        name: str, rows: to.Predictions | dict[str, to.Predictions], argument: str, diagram: str, **settings: object
    ) -> Picture:
        words = "".join(f", {key}={value!r}" for key, value in settings.items())
        return Picture(name, f'to.draw({argument}, "{diagram}"{words})', lambda: to.draw(rows, diagram, **settings))

    chapter = "Calibration of one probability"
    yield chapter, one("reliability", vgg16, "vgg16", "reliability")
    yield chapter, one("reliability_equal_mass", vgg16, "vgg16", "reliability", partition="equal-mass")
    yield chapter, one("reliability_intervals", adult, "adult", "reliability", bars="confidence")
    yield chapter, one("reliability_deviation", vgg16, "vgg16", "reliability", style="deviation")
    yield chapter, one("reliability_classwise", named, "vgg16", "reliability", lens="classwise")
    yield chapter, one("confidence_histogram", vgg16, "vgg16", "confidence_histogram")
    yield chapter, one("reliability_curve", vgg16, "vgg16", "reliability_curve")
    yield chapter, one("corp", hockey, "hockey", "corp")
    yield chapter, one("corp_discrimination", rain["EMOS"], 'rain["EMOS"]', "corp", style="discrimination")
    yield chapter, one("corp_honest", adult, "adult", "corp", band="honest")
    yield chapter, one("calibration_belt", adult, "adult", "calibration_belt", **BELT)
    yield chapter, one("cumulative", vgg16, "vgg16", "cumulative")
    yield chapter, one("selective_risk", vgg16, "vgg16", "selective_risk")

    chapter = "Calibration of probability vectors"
    yield chapter, one("simplex_25", vgg16, "vgg16", "simplex", lens=GROUPS, bins=5)
    yield chapter, one("simplex_100", vgg16, "vgg16", "simplex", lens=GROUPS, bins=10)
    yield chapter, one("simplex_soccer", soccer, "soccer", "simplex")
    yield chapter, one("simplex_classes", named, "vgg16", "simplex")
    yield chapter, one("tetrahedron", emotion, "emotion", "tetrahedron")

    chapter = "Model comparison"
    halves = {"before": vgg16[5000:], "after": None}
    calibrator = to.fit(vgg16[:5000], "temperature")
    rest = vgg16[5000:]
    halves["after"] = to.Predictions(rest.y, calibrator.predict_proba(rest), classes=range(10))
    yield chapter, one("comparison", halves, '{"before": vgg16[5000:], "after": recalibrated}', "comparison")
    yield chapter, one("comparison_nets", four, "nets", "comparison")
    yield chapter, one("murphy", {name: rain[name] for name in ("EMOS", "ENS")}, EMOS_AND_ENS, "murphy")
    yield chapter, one("murphy_plane", rain, "rain", "murphy", style="plane")

    chapter = "Recalibration"
    yield chapter, one("recalibration_lines", hockey, "hockey", "recalibration_lines")
    yield chapter, one("mcllo_parameters", named, "vgg16", "mcllo_parameters")
    yield chapter, one("llo_posterior", hockey, "hockey", "llo_posterior")

    yield (
        "Calibration during training",
        Picture(
            "training", 'to.draw({"a/1": …, "a/2": …, …, "b/30": …}, "training")', lambda: to.draw(epochs(), "training")
        ),
    )


BELT: dict[str, object] = {"min_prob": 0.005}


def epochs(count: int = 30) -> dict[str, to.Predictions]:
    """Predictions of two small networks for held-out digits after each training epoch."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    pixels, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digit))
    learn, test = order[:900], order[900:]
    predictions = {}
    for run in ("a", "b"):
        net = MLPClassifier((64,), random_state=ord(run), learning_rate_init=0.003)
        for epoch in range(1, count + 1):
            net.partial_fit(pixels[learn] / 16, digit[learn], classes=range(10))
            predictions[f"{run}/{epoch}"] = to.Predictions(digit[test], net.predict_proba(pixels[test] / 16))
    return predictions


if __name__ == "__main__":
    main(*sys.argv[1:])
