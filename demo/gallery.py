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

HEAD = """# Gallery of diagrams

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
- `monitor`: the probabilities of a win in `soccer` by week, 2018 to 2020; from August 2019 on, every eighth is missed
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
    return " ".join([diagram.default_title(), diagram.summary()]).replace("\n", " ").replace("[", "(").replace("]", ")")


@dataclass(frozen=True)
class GalleryPredictions:
    """The predictions of the gallery, which the head of the page describes."""

    vgg16: to.Predictions
    named: to.Predictions  # those of vgg16, with the names of the classes
    nets: dict[str, to.Predictions]
    hockey: to.Predictions
    rain: dict[str, to.Predictions]
    soccer: to.Predictions
    emotion: to.Predictions
    adult: to.Predictions
    date: np.ndarray  # of the matches of `soccer`


def load_predictions(data: str) -> GalleryPredictions:
    """Load all predictions from the files in the folder `data`."""
    vgg = load_npz("plambda_cifar10_vgg16.npz", data)
    nets = load_npz("widmann_cifar10_4nets.npz", data)
    ice = load_parquet("brcal_hockey.parquet", data)
    days = load_parquet("precip_niamey_2016.parquet", data)
    games = load_parquet("fte_soccer.parquet", data)
    speech = load_npz("psr_emotion_final.npz", data)
    votes = load_parquet("adult_rf_predictions.parquet", data)
    return GalleryPredictions(
        vgg16=to.Predictions(vgg["labels"], vgg["probs"], classes=range(10)),
        named=to.Predictions(np.array(CIFAR)[vgg["labels"]], vgg["probs"], classes=CIFAR),
        nets={key.removeprefix("probs_"): to.Predictions(nets["labels"], nets[key]) for key in nets if key != "labels"},
        hockey=to.Predictions(ice["y"].astype(int), ice["x"]),
        rain={name: to.Predictions(days["obs"].astype(int), days[name]) for name in ("Logistic", "EMOS", "ENS", "EPC")},
        soccer=to.Predictions(
            np.array(["win", "tie", "loss"])[games["label"]],
            np.stack([games[name] for name in ("prob1", "probtie", "prob2")], axis=1),
            classes=("win", "tie", "loss"),
            group={"league": games["league"]},
            sum_tolerance=1e-3,
        ),
        emotion=to.Predictions.from_logits(speech["labels_tst"], speech["logits_tst"]),
        adult=to.Predictions(votes["y"].astype(int), votes["p"]),
        date=np.asarray(games["date"], dtype="datetime64[D]"),
    )


def make_picture(
    name: str, rows: to.Predictions | dict[str, to.Predictions], argument: str, diagram: str, **settings: object
) -> Picture:
    """Make the figure of a diagram; `argument` is the expression that the page shows for `rows`."""
    settings_text = "".join(f", {key}={value!r}" for key, value in settings.items())
    return Picture(name, f'to.draw({argument}, "{diagram}"{settings_text})', lambda: to.draw(rows, diagram, **settings))


def pictures(data: str) -> Iterator[tuple[str, Picture]]:
    """Chapters and figures in the order of the page."""
    preds = load_predictions(data)
    chapters = {
        "Calibration of one probability": single_probability_pictures,
        "Calibration of probability vectors": vector_pictures,
        "Model comparison": comparison_pictures,
        "Recalibration": recalibration_pictures,
        "Calibration during training": training_pictures,
        "Calibration over time": monitor_pictures,
    }
    for chapter, make_pictures in chapters.items():
        for picture in make_pictures(preds):
            yield chapter, picture


def single_probability_pictures(preds: GalleryPredictions) -> Iterator[Picture]:
    """Figures on the calibration of one probability per row."""
    vgg16, adult = preds.vgg16, preds.adult
    yield make_picture("reliability", vgg16, "vgg16", "reliability")
    yield make_picture("reliability_equal_mass", vgg16, "vgg16", "reliability", partition="equal-mass")
    yield make_picture("reliability_intervals", adult, "adult", "reliability", bars="confidence")
    yield make_picture("reliability_deviation", vgg16, "vgg16", "reliability", style="deviation")
    yield make_picture("reliability_classwise", preds.named, "vgg16", "reliability", lens="classwise")
    yield make_picture("confidence_histogram", vgg16, "vgg16", "confidence_histogram")
    yield make_picture("reliability_curve", vgg16, "vgg16", "reliability_curve")
    yield make_picture("corp", preds.hockey, "hockey", "corp")
    yield make_picture("corp_discrimination", preds.rain["EMOS"], 'rain["EMOS"]', "corp", style="discrimination")
    yield make_picture("corp_honest", adult, "adult", "corp", band="honest")
    yield make_picture("calibration_belt", adult, "adult", "calibration_belt", **BELT)
    yield make_picture("cumulative", vgg16, "vgg16", "cumulative")
    yield make_picture("selective_risk", vgg16, "vgg16", "selective_risk")
    yield make_picture("groups", preds.soccer, "soccer", "groups", lens="class:win")


def vector_pictures(preds: GalleryPredictions) -> Iterator[Picture]:
    """Figures on the calibration of probability vectors."""
    vgg16 = preds.vgg16
    yield make_picture("simplex_25", vgg16, "vgg16", "simplex", lens=GROUPS, bins=5)
    yield make_picture("simplex_100", vgg16, "vgg16", "simplex", lens=GROUPS, bins=10)
    yield make_picture("simplex_soccer", preds.soccer, "soccer", "simplex")
    yield make_picture("simplex_classes", preds.named, "vgg16", "simplex")
    yield make_picture("tetrahedron", preds.emotion, "emotion", "tetrahedron")


def comparison_pictures(preds: GalleryPredictions) -> Iterator[Picture]:
    """Figures that compare models."""
    held_out = preds.vgg16[5000:]
    calibrator = to.fit(preds.vgg16[:5000], "temperature")
    recalibrated = to.Predictions(held_out.y, calibrator.predict_proba(held_out), classes=range(10))
    models = {"before": held_out, "after": recalibrated}
    yield make_picture("comparison", models, '{"before": vgg16[5000:], "after": recalibrated}', "comparison")
    yield make_picture("comparison_nets", preds.nets, "nets", "comparison")
    yield make_picture("murphy", {name: preds.rain[name] for name in ("EMOS", "ENS")}, EMOS_AND_ENS, "murphy")
    yield make_picture("decision_curve", preds.adult, "adult", "decision_curve")
    yield make_picture("murphy_plane", preds.rain, "rain", "murphy", style="plane")


def recalibration_pictures(preds: GalleryPredictions) -> Iterator[Picture]:
    """Figures on recalibration."""
    yield make_picture("recalibration_lines", preds.hockey, "hockey", "recalibration_lines")
    yield make_picture("mcllo_parameters", preds.named, "vgg16", "mcllo_parameters")
    yield make_picture("llo_posterior", preds.hockey, "hockey", "llo_posterior")


def training_pictures(_: GalleryPredictions) -> Iterator[Picture]:
    """The figure on calibration during training, whose networks are trained here."""
    yield Picture(
        "training", 'to.draw({"a/1": …, "a/2": …, …, "b/30": …}, "training")', lambda: to.draw(epochs(), "training")
    )


def monitor_pictures(preds: GalleryPredictions) -> Iterator[Picture]:
    """The figure of a monitor."""
    monitor = monitored(preds.soccer, preds.date)
    yield Picture("monitor", 'to.draw(monitor, "monitor")', lambda: to.draw(monitor, "monitor"))


def monitored(soccer: to.Predictions, date: np.ndarray) -> to.Monitor:
    """Return a monitor of the probabilities of a win until March 2020; from August 2019 on, every eighth is missed."""
    win = soccer.classes.index("win")
    is_missed = (date >= np.datetime64("2019-08-01")) & (np.arange(soccer.n) % 8 == 0)
    rows = (date >= np.datetime64("2018-01-01")) & (date < np.datetime64("2020-03-09"))
    preds = to.Predictions((soccer.y == win) & ~is_missed, soccer.P[:, win])[rows]
    return to.Monitor(horizon="3d", unit="week").update(preds, date[rows], as_of=date[rows].max())


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
