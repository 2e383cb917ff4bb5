"""Is the forest plot of subgroups the analysis of `by_group`, with every group that exists, and legible for many?"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.diagrams.artists import name_of
from trueodds.diagrams.groups import ForestPlot
from trueodds.lenses.view import View


def data(n_groups=4, n=1200, names=None, weights=False):
    """Rows of several sites; site 1 has far more events than predicted, and the last one may have no weight."""
    rng = np.random.default_rng(3)
    site, p = np.arange(n) % n_groups, rng.beta(2, 3, n)
    y = (rng.random(n) < np.where(site == 1, 1 - (1 - p) ** 3, p)).astype(int)
    names = names or [f"site {i}" for i in range(n_groups)]
    weight = np.where(site == n_groups - 1, 0.0, 1.0) if weights else None
    return to.Predictions(y, p, group={"site": np.array(names)[site]}, weight=weight)


def part(diagram, name):
    mask = diagram.table["part"] == name
    return {column: values[mask] for column, values in diagram.table.items()}


@pytest.mark.parametrize("estimator", ["ece", "brier"])
def test_the_table_holds_what_by_group_returns(estimator):
    preds = data()
    diagram = to.draw(preds, "groups", estimator=estimator, resamples=199)
    by_group = to.by_group(preds, estimator, resamples=199)
    rows = part(diagram, "group")
    assert rows["value"].tolist() == [group.value for group in by_group.groups]
    for column, values in {
        "error": [group.estimate.value for group in by_group.groups],
        "error_low": [group.estimate.interval.low for group in by_group.groups],
        "error_high": [group.estimate.interval.high for group in by_group.groups],
        "noise_floor": [group.estimate.noise_floor for group in by_group.groups],
        "pvalue": [group.pvalue for group in by_group.groups],
        "joint": [group.joint for group in by_group.groups],
    }.items():
        np.testing.assert_array_equal(rows[column], values)
    assert rows["status"].tolist() == [group.status for group in by_group.groups]
    assert part(diagram, "all")["error"].item() == by_group.overall.value
    assert diagram.lens == by_group.lens
    json.dumps(diagram.to_dict(), allow_nan=False)


def test_the_miscalibrated_group_is_orange_and_named_first():
    diagram = to.draw(data(), "groups", resamples=199)
    assert part(diagram, "group")["status"].tolist()[1] == "miscalibrated"
    assert diagram.finding.startswith("1 of 4 groups is miscalibrated")
    assert "site=site 1 (underpredicted)" in diagram.finding
    ax = diagram.draw().axes[0]
    (point,) = (line for line in ax.lines if name_of(line) == "miscalibrated")
    assert point.get_xydata().tolist() == [[part(diagram, "group")["error"][1], 1.0]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["site 0", "site 1", "site 2", "site 3"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first group is at the top


def test_no_group_is_dropped_in_silence():
    preds = data(6, weights=True)
    diagram = to.draw(preds, "groups", max_groups=3, resamples=99)
    listed = part(diagram, "unexamined")
    assert listed["status"].tolist() == ["max_groups", "max_groups", "no_weight"]
    assert np.isnan(listed["error"]).all()
    assert sorted([*part(diagram, "group")["value"], *listed["value"]]) == [f"site {i}" for i in range(6)]
    assert diagram.finding.endswith("3 groups were not examined.")
    ax = diagram.draw().axes[0]
    assert [text.get_text() for text in ax.texts].count("not examined") == 3
    assert len(ax.get_yticklabels()) == 6


def test_groups_need_rows_with_groups():
    preds = data()
    without = to.Predictions(preds.y, preds.p)
    assert refused("TO409", lambda: to.draw(without, "groups"))
    assert refused("TO409", lambda: ForestPlot()([View(preds.p, preds.y)]))
    assert refused("TO403", lambda: to.draw(to.tally(preds), "groups"))
    assert refused("TO205", lambda: to.draw({"a": preds, "b": preds}, "groups"))
    assert refused("TO203", lambda: to.draw(preds, "groups", max_groups=0))


def test_of_several_columns_the_names_include_the_column():
    preds = data()
    sex = np.where(np.arange(preds.n) % 3 == 0, "f", "m")
    both = to.Predictions(preds.y, preds.p, group={"site": preds.group["site"], "sex": sex})
    diagram = to.draw(both, "groups", resamples=99)
    labels = [label.get_text() for label in diagram.draw().axes[0].get_yticklabels()]
    assert labels == ["site=site 0", "site=site 1", "site=site 2", "site=site 3", "sex=f", "sex=m"]
    assert diagram.axis_labels() == ("ECE", "")


@pytest.mark.slow
def test_many_groups_make_the_figure_higher_and_long_names_differ_where_they_are_cut():
    few, many = (to.draw(data(k, names=[f"Department of Internal Medicine, ward {i}" for i in range(k)]), "groups",
                         resamples=99) for k in (3, 40))  # fmt: skip
    assert many.figure_size[1] > few.figure_size[1] + 37 * 0.2
    figure = many.draw()
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == 40
    assert all("…" in label for label in labels)
    tops = [label.get_window_extent().y1 for label in figure.axes[0].get_yticklabels()]
    bottoms = [label.get_window_extent().y0 for label in figure.axes[0].get_yticklabels()]
    assert all(below < above for below, above in zip(tops[1:], bottoms[:-1], strict=True))  # no two overlap


def test_limits_contain_every_interval_and_the_best_value():
    diagram = to.draw(data(), "groups", resamples=99)
    rows, panel = part(diagram, "group"), diagram.panel_values(0)
    assert panel["x_low"] < 0 < max(rows["error_high"]) < panel["x_high"]
    signed = to.draw(data(), "groups", estimator="calibration_in_the_large", resamples=99)
    assert signed.panel_values(0)["x_low"] < 0
    assert not math.isnan(part(signed, "group")["mean_prediction"][0])


def test_the_display_takes_the_groups():
    preds = data()
    shown = to.GroupsDisplay.from_predictions(preds.y, preds.p, group=dict(preds.group), resamples=99)
    assert shown.diagram.to_dict() == to.draw(preds, "groups", resamples=99).to_dict()


def test_the_mean_of_the_groups_and_the_interval_of_a_new_one_are_two_more_rows():
    diagram = to.draw(data(), "groups", estimator="o_e", between=True, resamples=99)
    (between,) = to.by_group(data(), "o_e", between=True, resamples=99).between
    assert diagram.table["part"].tolist() == ["group"] * 4 + ["mean", "new", "all"]
    assert diagram.table["error"][4] == pytest.approx(between.mean)
    assert diagram.table["error_low"][4:6].tolist() == [between.mean_interval.low, between.prediction.low]
    assert diagram.table["error_high"][4:6].tolist() == [between.mean_interval.high, between.prediction.high]
    assert diagram.panels["x_low"][0] < between.prediction.low
