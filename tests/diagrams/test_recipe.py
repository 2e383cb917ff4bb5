"""What all diagrams are asked for in the same way: one model or several, with layers left out."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.lens_by_name import as_lens


def preds(seed=0, n=50):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return to.Predictions((rng.random(n) < p).astype(int), p)


def test_a_diagram_of_one_model_refuses_two():
    with pytest.raises(InputError, match=r"TO205.*2 models"):
        to.draw({"a": preds(0), "b": preds(1)}, "reliability")


def test_one_named_model_is_the_model():
    assert to.draw({"a": preds()}).to_dict() == to.draw(preds()).to_dict()
    assert Reliability().draw_models({"": preds()}, as_lens("positive")).table["n"].sum() == 50


def test_a_dict_of_columns_is_still_one_table_of_rows():
    frame = {"label": [0, 1, 1], "p_0": [0.8, 0.3, 0.1], "p_1": [0.2, 0.7, 0.9]}
    assert to.draw(frame).panels["n"].tolist() == [3]


def test_axes_hold_one_diagram_until_they_are_cleared():
    ax = Figure().subplots()
    to.draw(preds(), ax=ax)
    with pytest.raises(InputError, match=r"TO203.*comparison"):
        to.draw(preds(1), "corp", ax=ax)
    ax.clear()
    to.draw(preds(1), "corp", ax=ax)


@pytest.mark.parametrize("with_axes", [False, True])
@pytest.mark.parametrize("name", ["reliability", "confidence_histogram", "corp"])
def test_the_legend_may_be_left_out(name, with_axes):
    diagram = to.draw(preds(), name).less("legend")
    ax = Figure().subplots() if with_axes else None
    drawn = diagram.draw(ax)
    figure = ax.figure if with_axes else drawn
    assert figure.legends == []
    assert all(panel.get_legend() is None for panel in figure.axes)


def test_a_layer_that_a_diagram_does_not_have_is_refused():
    with pytest.raises(InputError, match=r"TO203.*no such layer"):
        to.draw(preds()).less("clouds")


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_no_diagram_takes_an_unknown_setting(name):
    with pytest.raises(InputError, match="TO202"):
        to.draw(preds(), name, binz=3)
