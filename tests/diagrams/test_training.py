"""What a training shows: the numbers of each epoch, the best epochs, and four parts that draw them."""

from __future__ import annotations

import json
import warnings
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import trueodds as to
from tests.diagrams.artists import legend_of, name_of
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.diagrams.training import Training, parse_epoch
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

PARTS = ["log_loss", "accuracy", "ece", "pvalue"]


@cache
def digits(epochs=4, runs=1):
    """A small net's predictions of other digits after each epoch."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    fit, held_out = order[:600], order[600:]
    predictions = {}
    for r in range(runs):
        net = MLPClassifier((32,), random_state=r, learning_rate_init=0.01, batch_size=50)
        for epoch in range(1, epochs + 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                net.partial_fit(X[fit] / 16, y[fit], classes=np.arange(10))
            name = f"{'abcdefgh'[r]}/{epoch}" if runs > 1 else str(epoch)
            predictions[name] = to.Predictions(y[held_out], net.predict_proba(X[held_out] / 16))
    return predictions


def parts(ax):
    return {name_of(child): child for child in ax.child_axes}


def marks(ax, label):
    return [artist for artist in ax.get_children() if name_of(artist) == label]


def codes(diagram):
    return [note.code for note in diagram.notes]


def test_values_by_hand():
    # .8 .2 .8 .2 with 1 0 0 0: log loss (-3 log .8 - log .2)/4; three of four right; one bin (0, .5] with two rows,
    # mean .2, none came; one (.5, 1] with two, mean .8, one came: ECE (.2 + .3)/2.
    preds = to.Predictions([1, 0, 0, 0], [0.8, 0.2, 0.8, 0.2])
    t = to.draw({"3": preds}, "training", bins=2).table
    assert t["log_loss"][0] == pytest.approx(-(3 * np.log(0.8) + np.log(0.2)) / 4)
    assert t["accuracy"][0] == 0.75
    assert t["ece"][0] == pytest.approx(0.25)
    assert t["epoch"].tolist() == [3.0]
    assert t["n"].tolist() == [4]
    # Losses a = -log .8 three times and b = -log .2: the standard error is sqrt(Σ(l - m)²)/4.
    loss = -np.log([0.8, 0.8, 0.2, 0.8])
    half = 1.959964 * np.sqrt(((loss - loss.mean()) ** 2).sum()) / 4
    assert t["log_loss_high"][0] == pytest.approx(loss.mean() + half, abs=1e-6)
    # Wilson, 3 of 4 at 95 %: [.3006, .9544].
    np.testing.assert_allclose([t["accuracy_low"][0], t["accuracy_high"][0]], [0.3006, 0.9544], atol=5e-5)


def test_every_epoch_has_the_numbers_that_measure_and_test_give():
    models = digits()
    diagram = to.draw(models, "training", resamples=199, rng=5)
    for i, preds in enumerate(models.values()):
        verdict = to.test(preds, "consistency", lens="confidence", resamples=199, rng=5)
        assert diagram.table["pvalue"][i] == verdict.pvalue
        assert diagram.table["ece"][i] - diagram.table["noise_floor"][i] == pytest.approx(verdict.effect)
        assert diagram.table["ece"][i] == pytest.approx(to.measure(preds, "ece", interval=None).value)
        assert diagram.table["log_loss"][i] == pytest.approx(to.measure(preds, "log_loss", interval=None).value)


def test_an_epoch_does_not_depend_on_the_others():
    models = digits()
    alone = to.draw({"3": models["3"]}, "training").table
    among = to.draw(models, "training").table
    for name in ("noise_floor", "pvalue", "log_loss"):
        assert alone[name][0] == among[name][2]


def test_epochs_are_numbers_in_order_and_runs_stay_apart():
    a, b = digits()["1"], digits()["2"]
    t = to.draw({"x/y/10": a, "x/y/9": b, "z/2": a, "z/1.5": b}, "training", resamples=9).table
    assert t["run"].tolist() == ["x/y", "x/y", "z", "z"]
    assert t["epoch"].tolist() == [9.0, 10.0, 1.5, 2.0]
    assert parse_epoch("-1") == ("", -1.0)


@pytest.mark.parametrize(
    "names", [["one"], ["a/"], ["nan"], ["1e999"], [""], ["1", "1.0"], ["1", "a/2"], ["a/1", "a/1.0"]]
)
def test_names_without_an_epoch_are_refused(names):
    preds = digits()["1"]
    with pytest.raises(InputError, match="TO205"):
        to.draw(dict.fromkeys(names, preds), "training")


def test_predictions_without_a_name_are_refused_with_how_to_name_them():
    with pytest.raises(InputError, match=r"TO205.*run/epoch.*'1'"):
        to.draw(digits()["1"], "training")
    with pytest.raises(InputError, match="TO205"):
        Training()([View([0.5], [1])])


def test_models_of_different_outcomes_are_refused():
    two = to.Predictions([0, 1], [0.2, 0.7])
    with pytest.raises(InputError, match=r"TO205.*classes of 10 and classes of 2"):
        to.draw({"1": digits()["1"], "2": two}, "training")


@pytest.mark.parametrize("settings", [{"resamples": 0}, {"level": 1.0}, {"partition": "none"}])
def test_a_setting_without_meaning_is_refused(settings):
    with pytest.raises(InputError, match="TO203"):
        to.draw(digits(), "training", **settings)


def test_the_lowest_log_loss_of_each_run_is_marked():
    diagram = to.draw(digits(epochs=3, runs=2), "training", resamples=99)
    t = diagram.table
    for run in ("a", "b"):
        own = t["run"] == run
        assert t["lowest_log_loss"][own].sum() == 1
        assert t["log_loss"][own][t["lowest_log_loss"][own]][0] == t["log_loss"][own].min()
    assert diagram.panels["runs"].tolist() == [2]
    assert "TN265" in codes(diagram)


def test_the_finding_says_whether_the_best_epoch_is_calibrated():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    fine, sharp = to.Predictions(y, p), to.Predictions(y, p**3 / (p**3 + (1 - p) ** 3))
    finding = to.draw({"1": sharp, "2": fine}, "training").finding
    assert finding.startswith("The log loss is lowest at epoch 2, where the ECE is consistent with calibration:")
    assert "epoch 1, where the ECE is significant" in to.draw({"1": sharp}, "training").finding
    runs = {"a/1": sharp, "b/1": fine, "c/1": sharp}
    # Three runs at 5 % each: .15 of them by chance.
    finding = to.draw(runs, "training").finding.replace("\u00a0", " ")
    assert finding == (
        "At the lowest log loss, 2 of 3 runs are significantly miscalibrated (p ≤ 5 %); about 0.15 expected by chance."
    )


def test_an_infinite_log_loss_is_no_best_and_leaves_a_gap():
    worse = to.Predictions([0, 1, 2], [[0.0, 0.5, 0.5], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    sound = to.Predictions([0, 1, 2], [[0.1, 0.4, 0.5], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    diagram = to.draw({"1": worse, "2": sound}, "training")
    assert diagram.table["lowest_log_loss"].tolist() == [False, True]
    (line,) = marks(parts(diagram.draw().axes[0])["log_loss"], "run")
    assert np.isnan(line.get_ydata()).tolist() == [True, False]
    assert any(note.code == "TN104" and note.text.startswith("Epoch 1: 1 observed outcome") for note in diagram.notes)
    alone = to.draw({"1": worse}, "training")
    assert alone.finding == "No epoch has a finite log loss."
    assert "TN265" not in codes(alone)
    alone.draw()
    json.dumps(diagram.to_dict(), allow_nan=False)


def test_weights_of_every_row_times_two_change_nothing():
    preds = digits()["2"]
    w = np.random.default_rng(0).random(preds.n)
    one, two = (
        to.draw({"1": to.Predictions(preds.y, preds.P, weight=c * w)}, "training", resamples=99).table for c in (1, 2)
    )
    for name in ("log_loss", "log_loss_low", "accuracy", "accuracy_high", "ece", "noise_floor", "pvalue"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-9)


@pytest.mark.parametrize("lens", ["canonical", "classwise", "class:3", "top-2"])
def test_any_lens_is_one_row_for_each_epoch(lens):
    diagram = to.draw(digits(), "training", lens=lens, resamples=19)
    assert len(diagram.table["view"]) == 4
    assert set(diagram.table["view"]) == {lens}
    usual = to.draw(digits(), "training", resamples=19).table
    assert (diagram.table["log_loss"] == usual["log_loss"]).all()  # that of the whole prediction


def test_confidences_labels_apart_and_votes_are_drawn():
    rng = np.random.default_rng(1)
    confidences = to.Predictions.from_confidence(rng.random(60), rng.integers(0, 2, 60))
    multilabel = to.Predictions.from_multilabel(rng.integers(0, 2, (60, 3)), rng.random((60, 3)))
    votes = to.Predictions(rng.multinomial(5, [0.2, 0.3, 0.5], 60), rng.dirichlet(np.ones(3), 60))
    for preds in (confidences, multilabel, votes):
        diagram = to.draw({"1": preds, "2": preds}, "training", resamples=19)
        assert diagram.table["log_loss"][0] == pytest.approx(to.measure(preds, "log_loss", interval=None).value)
        assert np.isnan(diagram.table["accuracy"]).all() == (preds.kind == "multilabel")
        diagram.draw()


def test_a_tally_is_drawn_as_its_rows_are():
    preds = digits()["3"]
    rows, cells = (to.draw({"1": data}, "training").table for data in (preds, to.tally(preds)))
    for name in ("log_loss", "log_loss_low", "accuracy", "accuracy_low", "ece", "n"):
        np.testing.assert_allclose(rows[name].astype(float), cells[name].astype(float), rtol=1e-9)


@pytest.mark.slow
def test_the_null_has_uniform_p_values():
    # A calibrated model: P[p <= .25] <= .25; of 120 tests 4 sd more than 30 are 49.
    rng = np.random.default_rng(2)
    models = {}
    for i in range(120):
        p = rng.random(80)
        models[str(i)] = to.Predictions((rng.random(80) < p).astype(int), p)
    t = to.draw(models, "training", resamples=99, bins=5).table
    assert (t["pvalue"] <= 0.25).sum() <= 49
    # The floor is the mean ECE under calibration: the mean difference is within 4 standard errors of 0.
    gap = t["ece"] - t["noise_floor"]
    assert abs(gap.mean()) <= 4 * gap.std(ddof=1) / np.sqrt(120)


# Pictures


def test_what_is_drawn_is_the_table():
    diagram = to.draw(digits(), "training", resamples=99)
    t, drawn = diagram.table, parts(diagram.draw().axes[0])
    assert list(drawn) == PARTS
    for name, ax in drawn.items():
        (line,) = marks(ax, "run")
        np.testing.assert_array_equal(line.get_xdata(), t["epoch"])
        np.testing.assert_array_equal(line.get_ydata(), t[name])
        (star,) = marks(ax, "lowest_log_loss")
        np.testing.assert_array_equal(
            star.get_xydata(), [[t["epoch"][t["lowest_log_loss"]][0], t[name][t["lowest_log_loss"]][0]]]
        )
        assert len(marks(ax, "intervals")) == (name in ("log_loss", "accuracy"))
    (noise_floor,) = marks(drawn["ece"], "noise_floor")
    np.testing.assert_array_equal(noise_floor.get_ydata(), t["noise_floor"])
    (threshold,) = marks(drawn["pvalue"], "threshold")
    assert threshold.get_ydata()[0] == pytest.approx(0.05)
    assert len({ax.get_xlim() for ax in drawn.values()}) == 1


@pytest.mark.parametrize("layer", ["intervals", "noise_floor", "threshold", "lowest_log_loss"])
def test_a_layer_left_out_is_neither_drawn_nor_in_the_legend(layer):
    diagram = to.draw(digits(), "training", resamples=9)

    def marks_and_texts(shown):
        ax = shown.draw().axes[0]
        return [mark for part in ax.child_axes for mark in marks(part, layer)], legend_of(ax).get_texts()

    (all_marks, entries), (less, fewer) = marks_and_texts(diagram), marks_and_texts(diagram.less(layer))
    assert all_marks
    assert not less
    assert len(fewer) == len(entries) - 1
    assert not legend_of(diagram.less(*diagram.layers).draw().axes[0])


@pytest.mark.slow
def test_runs_are_named_up_to_six_and_counted_beyond():
    preds = digits()["1"]
    diagram = to.draw({f"{run}/1": preds for run in "abc"}, "training", resamples=9)
    many = to.draw({f"{run}/1": preds for run in "abcdefgh"}, "training", resamples=9)
    assert [text.get_text() for text in legend_of(diagram.draw().axes[0]).get_texts()][:3] == ["a", "b", "c"]
    assert legend_of(many.draw().axes[0]).get_texts()[0].get_text() == "8 runs"


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_in_axes_that_are_given_nothing_leaves_the_figure_or_meets_a_neighbor(runs):
    figure = Figure(figsize=(8, 4))
    left, right = figure.subplots(1, 2)
    diagram = to.draw(digits(runs=runs), "training", resamples=9)
    for ax in (left, right):
        assert diagram.draw(ax) is ax
    figure.canvas.draw()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= 8
    assert box.y1 <= 4
    assert left.get_tightbbox().x1 <= right.get_tightbbox().x0
    legend = left.get_legend().get_window_extent()
    for part in left.child_axes:
        assert part.get_window_extent().y1 < legend.y0


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_no_words_overlap(runs):
    from tests.diagrams.test_drawing import _words

    figure = to.draw(digits(runs=runs), "training", resamples=9).draw()
    figure.canvas.draw()
    texts = list(_words(figure))
    assert len(texts) > 12
    for i, (label, a) in enumerate(texts):
        for other, b in texts[:i]:
            disjoint = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
            assert disjoint, f"{label!r} meets {other!r}"


def test_fixed_bins_are_read_back():
    diagram = Training(Uniform(4), resamples=9).draw_models({"1": digits()["1"]}, as_lens("confidence"))
    assert diagram.settings["partition"] == "uniform 4"
    assert repr(diagram) == f"training · 1 epoch · n={digits()['1'].n:,} · lens confidence, 4 uniform bins"


def test_a_p_value_of_the_level_itself_is_off():
    # The least p of 9 redraws is 1/10, which 1 − .9 misses by a rounding.
    bold = to.Predictions([0, 1] * 50, [0.01, 0.3] * 50)
    diagram = to.draw({"1": bold}, "training", resamples=9, level=0.9)
    assert diagram.table["pvalue"].tolist() == [0.1]
    assert diagram.panels["n_miscalibrated"].tolist() == [1]


@pytest.mark.slow
def test_the_name_of_a_run_may_be_long_and_have_lines():
    preds = digits()["1"]
    models = {f"{run}/{epoch}": preds for run in (200 * "x", "$a$\n_b") for epoch in (1, 2)}
    ax = to.draw(models, "training", resamples=9).draw().axes[0]
    ax.get_figure().draw_without_rendering()
    usual = to.draw({"a/1": preds, "b/1": preds}, "training", resamples=9).draw().axes[0]
    usual.get_figure().draw_without_rendering()
    assert ax.get_position().width == pytest.approx(usual.get_position().width, rel=0.1)
    assert ax.get_position().height == pytest.approx(usual.get_position().height, rel=0.1)
    texts = [text.get_text() for text in legend_of(ax).get_texts()]
    assert texts[0].endswith("x…")
    assert texts[1] == r"$a$\n_b"
