"""Can readers with each kind of color blindness tell the colors of the page and of its figures from each other?"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import trueodds
from trueodds.diagrams._style import styling
from trueodds.diagrams.model_results import COLORS

# What a dichromat sees, in linear RGB. Source: Machado, Oliveira & Fernandes (2009), A physiologically-based model for
# simulation of color vision deficiency, IEEE TVCG 15(6), table of the matrices of severity 1.0.
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# sRGB to CIE XYZ (IEC 61966-2-1), and its white.
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# Distances in CIELAB. About 2.3 is just noticeable between two large areas side by side; marks are small and apart, so
# four times that is required where a word or a shape tells too, and nearly nine times where only the color does.
NOTICEABLE, CLEAR = 10.0, 20.0


def linear_rgb(color: str) -> np.ndarray:
    """Red, green and blue of a color such as #0072B2, proportional to light."""
    values = np.array([int(color.lstrip("#")[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(color: str, vision: str) -> np.ndarray:
    """CIELAB of a color as a reader with that vision sees it."""
    xyz = TO_XYZ @ np.clip(VISION[vision] @ linear_rgb(color), 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, vision: str) -> float:
    """How different two colors look to that vision."""
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2, from 1 to 21."""
    high, low = sorted((float(TO_XYZ[1] @ linear_rgb(color)) for color in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def palettes() -> dict[str, dict[str, str]]:
    """The named colors of the page, light and dark."""
    style = Path(trueodds.__file__).parent.joinpath("reports", "html", "style.css").read_text(encoding="utf-8")
    settings = re.findall(r":root\s*{([^}]*)}", style)
    blocks = [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})\b", text)) for text in settings]
    light = blocks[0]
    dark = next(block for block in blocks[1:] if block["paper"] != "#ffffff" and "ink" in block)
    return {"light": light, "dark": light | dark}


def test_known_colors_have_their_published_coordinates() -> None:
    # CIELAB of the primary colors of sRGB with white D65, as in any textbook: red 53.24, 80.09, 67.20; white 100, 0, 0.
    assert lab("#ff0000", "usual") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert lab("#ffffff", "usual") == pytest.approx([100, 0, 0], abs=0.01)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the example of WCAG's tutorials


def test_red_and_green_of_the_same_lightness_are_confused_without_one_of_their_cones() -> None:
    # The pair that everybody else tells apart at a glance; white stays white.
    assert distance("#cc0000", "#4d7f00", "usual") > 80
    assert distance("#cc0000", "#4d7f00", "deuteranopia") < 25
    for vision in VISION:
        assert lab("#ffffff", vision) == pytest.approx([100, 0, 0], abs=0.5)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_marks_of_the_page_look_different(scheme: str, vision: str) -> None:
    # A value on its noise floor, a gap on its track; good and bad, which words tell too.
    colors = palettes()[scheme]
    for one, other in (("blue", "floor"), ("gap", "line"), ("blue", "gap"), ("ink", "blue"), ("floor", "paper")):
        assert distance(colors[one], colors[other], vision) > NOTICEABLE, (one, other)
    assert distance(colors["good"], colors["bad"], vision) > NOTICEABLE


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_have_a_contrast_of_three_and_text_of_four_and_a_half(scheme: str) -> None:
    # WCAG 1.4.3 and 1.4.11.
    colors = palettes()[scheme]
    for ground in ("paper", "wash"):
        for name in ("ink", "soft", "bad", "good"):
            assert contrast(colors[name], colors[ground]) >= 4.5, (name, ground)
        assert contrast(colors["blue"], colors[ground]) >= 3


@pytest.mark.parametrize("vision", VISION)
def test_marks_inside_and_outside_of_their_bars_look_different(vision: str) -> None:
    assert distance(styling.INSIDE_COLOR, styling.OUTSIDE_COLOR, vision) > CLEAR
    assert distance(styling.INSIDE_BAR_COLOR, styling.OUTSIDE_BAR_COLOR, vision) > NOTICEABLE


@pytest.mark.parametrize("vision", VISION)
def test_the_colors_of_models_look_different(vision: str) -> None:
    # Eight colors; each model also has a marker or a pattern of its own.
    closest = min(combinations(COLORS, 2), key=lambda pair: distance(*pair, vision))
    assert distance(*closest, vision) > NOTICEABLE, closest
