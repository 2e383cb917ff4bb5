"""Values, words and pictures of several models on one pair of axes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import trueodds as to
from tests.diagrams.artists import name_of
from tests.diagrams.test_drawing import classwise, corners, marks
from tests.diagrams.test_murphy import plot_height
from tests.reference import data
from trueodds.core.errors import InputError
from trueodds.diagrams.comparison import Comparison
from trueodds.diagrams.model_results import COLORS, LINE_STYLES, MARKERS
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.lens_by_name import as_lens


def part(diagram, name, model=None):
    mask = diagram.table["part"] == name
    if model is not None:
        mask = mask & (diagram.table["model"] == model)
    return {column: values[mask] for column, values in diagram.table.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


def sharpened(p, power):
    odds = (p / (1 - p)) ** power
    return odds / (1 + odds)


def two(n=1000, seed=0):
    """A model that is too sure, and the same one put right."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 1.2, n)
    y = (rng.random(n) < p).astype(int)
    return {"before": to.Predictions(y, sharpened(p, 3)), "after": to.Predictions(y, p)}


def many(count, n=300):
    rng = np.random.default_rng(1)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    return {f"model {i}": to.Predictions(y, sharpened(p, 1 + i / 4)) for i in range(count)}


def nets():
    dataset = data("widmann_cifar10_4nets.npz")
    return {key[6:]: to.Predictions(dataset["labels"], dataset[key]) for key in dataset if key.startswith("probs_")}


def test_values_by_hand():
    # 5 bins. before: .9, .9 with one of two right, off by .4 there; after: .5, .5, right. ECE = .4 and 0.
    y = [1, 0]
    diagram = to.draw(
        {"before": to.Predictions(y, [0.9, 0.9]), "after": to.Predictions(y, [0.5, 0.5])}, "comparison", bins=5
    )
    bins = part(diagram, "bin")
    assert bins["model"].tolist() == ["before", "after"]
    np.testing.assert_allclose(bins["deviation"], [-0.4, 0.0])
    models = part(diagram, "model")
    np.testing.assert_allclose(models["error"], [0.4, 0.0], atol=1e-12)
    assert models["difference"][1] == pytest.approx(-0.4)
    assert np.isnan(models["difference"][0])
    # Calibrated: |.9 − 1| with .81, |.9 − .5| with .18, .9 with .01, mean .162, sd .137: 999 redraws scatter by .0043.
    assert models["noise_floor"][0] == pytest.approx(0.162, abs=4.5 * 0.0043)


@pytest.mark.parametrize("bars", ["confidence", "consistency", None])
@pytest.mark.parametrize("style", ["deviation", "diagonal"])
def test_each_model_is_drawn_as_its_own_reliability_diagram(style, bars):
    models = two()
    diagram = to.draw(models, "comparison", style=style, bars=bars)
    for name, rows in models.items():
        alone = Reliability(style=style, bars=bars)(as_lens("positive").views(rows)).table
        bins = part(diagram, "bin", name)
        for column in set(alone) - {"view"}:
            np.testing.assert_array_equal(bins[column], alone[column])


def test_errors_floors_and_differences_are_those_of_measure_and_compare():
    models = two()
    diagram = to.draw(models, "comparison", level=0.95)
    rows = part(diagram, "model")
    comparison = to.compare(models["after"], models["before"], "ece", level=0.95)
    assert rows["difference"][1] == pytest.approx(comparison.difference)
    # Another 999 redraws of the same null, whose mean the bias of either error is scaled by.
    assert rows["difference_low"][1] == pytest.approx(comparison.interval.low, rel=0.01)
    assert rows["difference_high"][1] == pytest.approx(comparison.interval.high, rel=0.01)
    for i, name in enumerate(models):
        own = to.measure(models[name], "ece")
        assert rows["error"][i] == pytest.approx(own.value)
        # Another 999 redraws of the same null.
        assert rows["noise_floor"][i] == pytest.approx(own.noise_floor, rel=0.05)


def test_differences_of_several_models_hold_together_as_in_a_ranking():
    models = many(4, n=1000)
    rows = part(to.draw(models, "comparison"), "model")
    own = {name: to.compare(models[name], models["model 0"], "ece", level=0.9).interval for name in list(models)[1:]}
    for i, interval in enumerate(own.values(), start=1):
        assert rows["difference_low"][i] <= interval.low + 1e-9
        assert rows["difference_high"][i] >= interval.high - 1e-9


def test_the_finding_is_put_in_words():
    diagram = to.draw(two(4000), "comparison")
    rows = part(diagram, "model")
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith(f"after: ECE {rows['error'][1]:.4f} (noise floor {rows['noise_floor'][1]:.4f}); before: ")
    low, high = -rows["difference_high"][1], -rows["difference_low"][1]
    assert finding.endswith(f"The difference, {-rows['difference'][1]:.4f} [{low:.4f}, {high:.4f}], is significant.")
    same = to.draw({"a": two()["after"], "b": to.Predictions(two()["after"].y, two()["after"].p * 0.999)}, "comparison")
    assert same.finding.endswith("is not significant.")


def test_real_networks_are_distinguished_as_by_compare():
    diagram = to.draw(nets(), "comparison")
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith("inception_v3 has the smallest ECE: 0.0275 (noise floor 0.00")
    assert "inception_v3 (0.0275) is better, resnet18 (0.0535) and vgg16_bn (0.0554) are worse." in finding


def test_a_model_alone_needs_no_name():
    diagram = to.draw(two()["before"], "comparison")
    assert diagram.finding.startswith("ECE ")
    assert diagram.legend()[0][1] == "model"
    assert not [text for text in diagram.draw().axes[0].texts if text.get_gid() == "side"]


def test_more_than_eight_models_are_refused():
    assert len(set(COLORS)) == len(set(MARKERS)) == len(set(map(str, LINE_STYLES))) == 8
    assert to.draw(many(8, n=60), "comparison").settings["models"][7] == "model 7"
    with pytest.raises(InputError, match=r"TO705.*9 models"):
        to.draw(many(9, n=60), "comparison")


def luminance(color):
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_models_of_like_lightness_have_other_marks_and_lines():
    for i in range(8):
        for j in range(i):
            assert abs(luminance(COLORS[i]) - luminance(COLORS[j])) > 0.12 or (
                MARKERS[i] != MARKERS[j] and LINE_STYLES[i] != LINE_STYLES[j]
            )


def test_models_of_other_rows_are_compared_as_such_with_a_note():
    a, b = two(1000, 0)["before"], two(800, 1)["after"]
    diagram = to.draw({"a": a, "b": b}, "comparison")
    assert "TN263" in codes(diagram)
    assert np.isfinite(part(diagram, "model")["difference_low"][1])
    with pytest.raises(InputError, match="TO205"):
        to.draw({"a": a, "b": b}, "comparison", paired=True)
    assert "TN263" not in codes(to.draw(two(), "comparison"))


def test_the_same_rows_in_another_order_are_not_taken_for_paired():
    models = two()
    rows = models["after"]
    order = np.argsort(rows.y, kind="stable")
    diagram = to.draw({"before": models["before"], "after": rows[order]}, "comparison")
    (note,) = [note for note in diagram.notes if note.code == "TN263"]
    assert "their outcomes differ" in str(note)


def test_views_that_not_all_models_have_are_refused():
    rng = np.random.default_rng(0)
    three, four = (to.Predictions(rng.integers(0, 3, 60), rng.dirichlet(np.ones(k), 60)) for k in (3, 4))
    with pytest.raises(InputError, match=r"TO205.*same views"):
        to.draw({"three": three, "four": four}, "comparison", lens="classwise")
    with pytest.raises(InputError, match=r"TO205.*vector per row"):
        to.draw({"three": three}, "comparison", lens="canonical")


def test_of_tallies_no_difference_is_reported():
    models = two()
    diagram = to.draw({name: to.tally(preds) for name, preds in models.items()}, "comparison")
    rows = part(diagram, "model")
    assert np.isnan(rows["difference"]).all()
    assert "TN263" in codes(diagram)
    assert rows["error"].tolist() == pytest.approx(
        [to.measure(preds, "ece").value for preds in models.values()], abs=0.002
    )
    assert "difference" not in diagram.finding


def test_a_weight_of_two_is_two_rows_for_marks_and_errors():
    y, p, w = np.array([1, 0, 1, 0]), np.array([0.2, 0.4, 0.9, 0.7]), np.array([1, 2, 1, 3])
    weighted = to.draw({"a": to.Predictions(y, p, weight=w)}, "comparison")
    twice = to.draw({"a": to.Predictions(np.repeat(y, w), np.repeat(p, w))}, "comparison")
    for column in ("mean_prediction", "outcome_rate", "share", "error"):
        np.testing.assert_allclose(weighted.table[column], twice.table[column])


def test_clusters_and_votes_are_drawn():
    rng = np.random.default_rng(0)
    P, votes = rng.dirichlet([1, 1], 200), rng.multinomial(9, [0.5, 0.5], 200)
    diagram = to.draw(
        {"a": to.Predictions(votes, P), "b": to.Predictions(votes, P[::-1])}, "comparison", lens="positive"
    )
    assert np.isfinite(part(diagram, "model")["error"]).all()
    clustered = {name: to.Predictions(preds.y, preds.p, cluster=np.arange(1000) // 5) for name, preds in two().items()}
    assert "TN248" in codes(to.draw(clustered, "comparison"))


def test_class_by_class_there_is_a_panel_for_each_and_one_overall_result():
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(3), 900)
    y = (P.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)
    sharpened = P**3 / (P**3).sum(axis=1, keepdims=True)
    models = {"good": to.Predictions(y, P), "sure": to.Predictions(y, sharpened)}
    diagram = to.draw(models, "comparison", lens="classwise")
    worst = [float(part(diagram, "model", "sure")["error"][i]) for i in range(3)]
    assert worst == sorted(worst, reverse=True)
    mask = diagram.table["view"] == "classwise"
    comparison = to.compare(models["sure"], models["good"], "ece", lens="classwise", level=0.9)
    assert diagram.table["difference"][mask][1] == pytest.approx(comparison.difference)
    assert diagram.finding.startswith("Mean over 3 views: good: ECE ")
    figure = diagram.draw()
    assert len(figure.axes) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["good", "sure"]


def test_many_views_are_noted():
    diagram = Comparison()(classwise(14, n=40))
    assert "TN245" in codes(diagram)
    assert len(diagram.panels["view"]) == 14


@pytest.mark.parametrize("bars", ["confidence", "consistency"])
@pytest.mark.parametrize("style", ["deviation", "diagonal"])
def test_what_is_drawn_is_the_table(style, bars):
    models = two()
    diagram = to.draw(models, "comparison", style=style, bars=bars)
    ax = diagram.draw().axes[0]
    y = "deviation" if style == "deviation" else "outcome_rate"
    points, hollow = marks(ax, "marks")[:2], marks(ax, "marks")[2:]
    for i, (line, bar, strip) in enumerate(
        zip(marks(ax, "lines"), marks(ax, "bars"), [c for c in ax.child_axes if name_of(c) == "strip"], strict=True)
    ):
        rows = part(diagram, "bin", list(models)[i])
        shift = line.get_xdata() - rows["mean_prediction"]
        np.testing.assert_allclose(shift, (i - 0.5) * 0.006, atol=0.003)  # ±1.1 of about 400 points
        assert line.get_color() == COLORS[i]
        for artist, shown, face in (
            (line, slice(None), COLORS[i]),
            (points[i], slice(None), COLORS[i]),
            (hollow[i], ~rows["outside"], "white"),
        ):
            np.testing.assert_array_equal(artist.get_xdata(), line.get_xdata()[shown])
            np.testing.assert_array_equal(artist.get_ydata(), rows[y][shown])
            assert artist is line or (artist.get_markerfacecolor(), artist.get_marker()) == (face, MARKERS[i])
        assert isinstance(bar, LineCollection)
        origin = rows["mean_prediction"] if style == "deviation" else 0.0
        np.testing.assert_array_equal(
            np.array(bar.get_segments())[:, :, 1],
            np.stack([rows["bar_low"] - origin, rows["bar_high"] - origin], axis=1),
        )
        (share,) = marks(strip, "share")
        np.testing.assert_array_equal(corners(share)[:, 1, 1], rows["share"])
    table = [text.get_text() for text in ax.texts if text.get_gid() == "side"]
    rows = part(diagram, "model")
    assert {f"{value:.4f}" for value in [*rows["error"], *rows["noise_floor"]]} <= set(table)
    assert (
        f"−{-rows['difference'][1]:.4f} [−{-rows['difference_low'][1]:.4f}, −{-rows['difference_high'][1]:.4f}]"
        in table
    )


def test_models_stand_a_few_points_beside_each_other():
    figure = to.draw(dict.fromkeys("abcd", many(1)["model 0"]), "comparison").draw()
    figure.draw_without_rendering()
    ax = figure.axes[0]
    first, *others = (line.get_transform().transform(line.get_xydata())[:, 0] for line in marks(ax, "lines"))
    steps = [np.median(other - first) * 72 / figure.dpi for other in others]
    np.testing.assert_allclose(steps, [2.2, 4.4, 6.6], rtol=0.2)  # the header makes the axes smaller


def test_without_any_layer_it_still_draws():
    diagram = to.draw(two(), "comparison")
    bare = diagram.less(*diagram.layers)
    assert bare.legend() == []
    bare.draw().savefig(io.BytesIO())
    bare.draw(Figure().subplots())
    grid = Comparison()(classwise(3))
    grid.less(*grid.layers).draw().draw_without_rendering()


def test_no_name_in_the_legend_stands_beside_nothing():
    diagram = to.draw(two(), "comparison")
    for removed, kind in (
        (("bars",), "line"),
        (("lines", "marks"), "bar"),
        (("bars", "lines", "marks"), "patch"),
        (("bars", "lines", "marks", "strip"), None),
    ):
        legend = {label: handle for handle, label in diagram.less(*removed).legend()}
        if kind is None:
            assert legend == {}
            continue
        for i, name in enumerate(("before", "after")):
            if kind == "patch":
                assert legend[name].get_facecolor()[:3] == pytest.approx(to_rgb(COLORS[i]))
                continue
            line, *markers = legend[name] if kind == "line" else [legend[name]]
            assert line.get_color() == COLORS[i]
            assert line.get_linestyle() != "None"
            assert [marker.get_marker() for marker in markers] == ([MARKERS[i]] if kind == "line" else [])


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_models_that_tie_are_named_together(order):
    a, b = two()["after"], two()["before"]
    models = {"a": a, "b": b, "c": a}
    finding = to.draw({name: models[name] for name in order}, "comparison").finding
    assert finding.startswith(f"a and c have the smallest ECE: {to.measure(a, 'ece').value:.4f}")
    if order[0] != "b":
        assert "Undecided" not in finding  # a model is not apart from itself
        assert finding.endswith(f"b ({to.measure(b, 'ece').value:.4f}) is worse.")
    same = to.draw(dict.fromkeys(order[:2], a), "comparison").finding
    assert same.startswith(f"{min(order[:2])} and {max(order[:2])} have the same ECE: ")
    assert "difference" not in same


@pytest.mark.slow
def test_eight_models_leave_the_marks_their_room():
    # The figure grows with what is said, listed and tabled.
    assert plot_height(to.draw(many(8), "comparison").draw()) >= 3.0
    assert to.draw(many(2), "comparison").figure_size[1] == pytest.approx(4.7 + 0.54)
