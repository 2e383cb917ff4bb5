"""Axes that share x or y with others are drawn on, although they show no tick labels of their own."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

import trueodds as to
from tests.slow_parameters import slow_except

ONE = to.Predictions([0, 1, 1], [0.2, 0.7, 0.9])
TWO = {"a": ONE, "b": to.Predictions([0, 1, 1], [0.4, 0.6, 0.9])}
NAMES = ["reliability", "corp", "cumulative", "confidence_histogram", "comparison", "reliability_curve", "murphy"]


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_except(NAMES, ["reliability"]))
def test_a_diagram_is_drawn_on_axes_that_share_x(name: str) -> None:
    figure, axes = plt.subplots(2, 2, sharex=True)
    try:
        for ax in axes.flat:
            to.draw(TWO if name == "comparison" else ONE, name, ax=ax)
        figure.canvas.draw()
        upper, lower = axes[0, 0], axes[1, 0]
        assert upper.get_xlim() == lower.get_xlim()
        assert not upper.get_xticklabels()
        labels = lower.get_xticklabels()
        assert (labels[0].get_ha(), labels[-1].get_ha()) == ("left", "right")
    finally:
        plt.close(figure)
