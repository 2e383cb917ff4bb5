"""Compare a few pictures with stored images: marks, positions and colors, without the text.

`python -m tests.diagrams.test_images` regenerates the stored images after the pictures have been inspected.
"""

import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread, imsave
from matplotlib.text import Text

import trueodds as to

IMAGES = Path(__file__).parent / "images"
DOTS = 60  # per inch
# The root mean square difference of two images in gray levels of 256. Left out, the bars of a reliability diagram are
# 14, its crosses 10; another version of the drawing library moves edges by less than a pixel.
NEAR = 4.0


def binary():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 2000)
    return to.Predictions((rng.random(2000) < p**1.5).astype(int), p)


def three():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 3000)
    true = P**0.6 / (P**0.6).sum(axis=1, keepdims=True)
    return to.Predictions((true.cumsum(axis=1) < rng.random(3000)[:, None]).sum(axis=1), P)


PICTURES = {
    "reliability": lambda: to.draw(binary(), "reliability"),
    "reliability_deviation": lambda: to.draw(binary(), "reliability", style="deviation"),
    "reliability_intervals": lambda: to.draw(binary(), "reliability", bars="confidence"),
    "corp": lambda: to.draw(binary(), "corp", band="honest"),
    "cumulative": lambda: to.draw(binary(), "cumulative"),
    "simplex": lambda: to.draw(three(), "simplex", bins=5),
}


def drawn(diagram):
    """The picture in gray levels, its text taken out once everything has its place."""
    figure = diagram.draw()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for text in figure.findobj(Text):
        text.set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DOTS, facecolor="white")
    out.seek(0)
    return imread(out)[..., :3].mean(axis=2) * 255


def rms_difference(one, other):
    assert one.shape == other.shape
    return float(np.sqrt(((one - other) ** 2).mean()))


def load_image(name):
    return imread(IMAGES / f"{name}.png")[..., :3].mean(axis=2) * 255


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(name):
    assert rms_difference(drawn(PICTURES[name]()), load_image(name)) < NEAR


@pytest.mark.parametrize("layer", ["bars", "crosses"])
def test_a_picture_without_a_layer_looks_otherwise(layer):
    assert rms_difference(drawn(PICTURES["reliability"]().less(layer)), load_image("reliability")) > 1.5 * NEAR


def main():
    for name, picture in PICTURES.items():
        gray = np.repeat(drawn(picture())[..., None], 3, axis=2)
        imsave(IMAGES / f"{name}.png", np.clip(gray / 255, 0, 1))


if __name__ == "__main__":
    main()
