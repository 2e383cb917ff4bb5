"""Are characters that the font of the pictures lacks left to the fonts of the reader, in an SVG?"""

from __future__ import annotations

import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

import trueodds as to

pytest.importorskip("matplotlib")

EAST_ASIAN = ("猫", "犬と散歩", "강아지")


def picture(classes: tuple[str, ...]) -> str:
    """The SVG of a simplex diagram, whose corners have the names of the classes."""
    P = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    y = np.array(classes)[P.argmax(axis=1)]
    return to.draw(to.Predictions(y, P, classes=classes), "simplex").svg()


def texts(svg: str) -> list[str]:
    """What the SVG contains as text."""
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("}text")]


@pytest.mark.slow
def test_names_that_the_font_lacks_are_text_and_cause_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = picture(EAST_ASIAN)
    assert set(EAST_ASIAN) <= set(texts(svg))
    assert svg == picture(EAST_ASIAN)


@pytest.mark.slow
def test_all_other_text_is_drawn_as_outlines() -> None:
    assert texts(picture(("cat", "Größe ≤ 3", "dog"))) == []
    assert all(re.search("[\u3040-\uffff]", text) for text in texts(picture(EAST_ASIAN)))
