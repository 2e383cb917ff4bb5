"""A tally holds what its rows hold: views, errors, scores, counts, the null covariance."""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.reference import columns, estimators, frame
from tests.tallies.batches import softmaxed
from trueodds.api.measure import measure_value
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError, MaxError, RootMeanSquareError
from trueodds.estimators.proper_scores import Brier, LogLoss
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens_by_name import Custom, as_lens
from trueodds.tallies.tally import Tally

LENSES = ("confidence", "top-1", "rank:1", "rank:2", "rank:3", "classwise", "class:2", "groups:[[0,1],[2,3]]")


def variants(k: int = 4, n: int = 2000) -> dict[str, Predictions]:
    rng = np.random.default_rng(7)
    hard = softmaxed(n, k, 7)
    votes = rng.multinomial(5, np.full(k, 1 / k), size=n)
    return {
        "hard": hard,
        "float32": softmaxed(n, k, 7, np.float32),
        "weighted": Predictions(hard.y, hard.p, weight=rng.random(n)),
        "votes": Predictions(votes, hard.p),
        "weighted votes": Predictions(votes, hard.p, weight=rng.random(n)),
        "column-major": Predictions(hard.y, np.asfortranarray(hard.p)),
    }


@pytest.mark.parametrize("what", list(variants(n=10)))
@pytest.mark.parametrize("lens", LENSES)
def test_errors_over_bins_that_nest_equal_those_of_the_rows(what, lens):
    preds = variants()[what]
    tally = Tally.from_predictions(preds, lenses=["groups:[[0,1],[2,3]]"])
    cells, rows = tally.views(lens), as_lens(lens).views(preds)
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        assert (cell.name, cell.n_rows, cell.classes) == (row.name, row.n_rows, row.classes)
        for bins in (10, 12, 15, 16, 20, 30, 64):
            for error in (BinnedError, MaxError, RootMeanSquareError):
                measure = error(Uniform(bins))
                assert measure.value(cell) == pytest.approx(measure.value(row), abs=1e-12)
        assert Brier().value(cell) == pytest.approx(Brier().value(row), abs=1e-12)


@pytest.mark.parametrize("shape", ["column", "two columns"])
@pytest.mark.parametrize("lens", ["positive", "canonical", "confidence", "classwise", "class:0"])
def test_two_classes_equal_their_rows(shape, lens):
    preds = softmaxed(2000, 2, 3, np.float32)
    if shape == "column":
        preds = Predictions(preds.y, preds.p[:, 1])
    for cell, row in zip(Tally.from_predictions(preds).views(lens), as_lens(lens).views(preds), strict=True):
        assert cell.name == row.name
        assert BinnedError(Uniform(15)).value(cell) == pytest.approx(BinnedError(Uniform(15)).value(row), abs=1e-12)


def test_an_edge_is_in_the_bin_below_it():
    # .3 lies in (.2, .3], with .25; .7 in (.6, .7] alone: ECE with 10 bins is
    # (|.55 − 1| + |.7 − 0|)/3 = (.45 + .7)/3 where the two rows below .3 both came.
    tally = Tally.from_predictions(Predictions([1, 1, 0], [0.3, 0.25, 0.7]))
    error = BinnedError(Uniform(10)).value(tally.views("positive")[0])
    assert error == pytest.approx((2 * (1 - 0.275) + 0.7) / 3, abs=1e-12)


def test_reference_numbers_of_an_independent_program():
    # golden/estimators: computed by a script of its own from b_multi1000.csv.
    table, golden = frame("estimators/b_multi1000.csv"), estimators()
    tally = Tally.from_predictions(Predictions(table["y"], columns(table)))
    confidence = tally.views("confidence")[0]
    for bins in (10, 15):
        expected = golden[f"b.confidence_ece.ew{bins}"]["value"]
        assert BinnedError(Uniform(bins)).value(confidence) == pytest.approx(expected, abs=1e-12)
    assert tally.score("brier")["mean"] == pytest.approx(golden["b.brier_sum"]["value"], abs=1e-12)
    assert tally.score("log_loss")["mean"] == pytest.approx(golden["b.logloss"]["value"], abs=1e-12)


@pytest.mark.parametrize("what", list(variants(n=10)))
@pytest.mark.parametrize("k", [2, 4])
def test_proper_scores_equal_those_of_the_rows(what, k):
    preds = variants(k)[what]
    (view,) = Canonical().views(preds)
    for name, score in (("brier", Brier()), ("log_loss", LogLoss())):
        tally_score = Tally.from_predictions(preds).score(name)
        s, w = score.row_scores(view), view.w
        mean = (w * s).sum() / w.sum()
        assert tally_score["mean"] == pytest.approx(mean, abs=1e-12)
        std_error = np.sqrt((w**2 * (s - mean) ** 2).sum()) / w.sum()
        assert tally_score["standard_error"] == pytest.approx(std_error, rel=1e-9)


def test_an_outcome_that_was_impossible_makes_the_log_loss_infinite_and_is_counted():
    preds = Predictions([0, 1, 2], [[0.5, 0.5, 0], [1, 0, 0], [0.2, 0.2, 0.6]])
    tally = Tally.from_predictions(preds)
    tally_score = tally.score("log_loss")
    assert (tally_score["mean"], tally_score["infinite"], tally.counts.true_zeros) == (np.inf, 1, 1)
    assert np.isnan(tally_score["standard_error"])
    assert tally_score["ws"] == pytest.approx(-np.log(0.5) - np.log(0.6))
    weightless = Tally.from_predictions(Predictions(preds.y, preds.p, weight=[1, 0, 1])).score("log_loss")
    assert weightless["mean"] == pytest.approx((-np.log(0.5) - np.log(0.6)) / 2)


def test_special_rows_are_counted():
    up = np.nextafter(1.0, 2)
    preds = Predictions([0, 1, 2, 0], [[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.2, 0.6], [up, 0, 0]])
    tally = Tally.from_predictions(preds)
    counts = tally.counts
    assert (counts.zeros, counts.ones, counts.above, counts.ties, counts.inexact_sums) == (5, 1, 1, 1, 0)
    assert counts.excess == up - 1
    # Rows 0 (first of the tie), 1, 2 and 3 are right.
    assert (tally.correct, tally.accuracy) == (4, 1)
    assert [note.code for note in tally.notes("confidence")] == ["TN102", "TN103"]


def test_counted_notes_add_and_say_what_one_pass_says():
    P = np.array([[0.3, 0.7], [0.3000021, 0.7], [0.5, 0.5]])
    preds = Predictions([0, 1, 1], P)
    both = Tally.from_predictions(preds) + Tally.from_predictions(preds)
    assert both.counts.inexact_sums == 2
    assert both.counts.worst_sum == pytest.approx(2.1e-6, rel=1e-6)
    assert "2 rows" in both.notes()[0].text
    assert len(Tally.from_predictions(preds).notes()) == len(preds.notes) == 1


def test_clusters_are_refused_since_their_chance_would_be_misjudged():
    with pytest.raises(InputError, match="TO404"):
        Tally.from_predictions(Predictions([0, 1], [0.2, 0.7], cluster=[1, 1]))


@pytest.mark.parametrize("bins", [5, 7, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_null_covariance_is_that_of_its_definition(bins, weighted):
    preds = softmaxed(300, 3, 5, np.float32)
    w = np.random.default_rng(1).random(300) if weighted else np.ones(300)
    tally = Tally.from_predictions(Predictions(preds.y, preds.p, weight=w) if weighted else preds, bins=bins)
    # Row by row: diag(w²p) − w²pp' spread over the report cells of the row's classes.
    edges = np.round(np.arange(1, bins) / bins * 3840) / 3840  # the nearest edges of cells
    expected = np.zeros((3 * bins, 3 * bins))
    for p, weight in zip(preds.p.astype(float), w, strict=True):
        cell = np.arange(3) * bins + np.searchsorted(edges, p, "left")
        expected[np.ix_(cell, cell)] += weight**2 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(tally.null_covariance, expected, rtol=1e-12, atol=1e-12)


def test_the_null_covariance_is_that_of_drawn_labels():
    # 4000 draws of all labels: the variance of Σ(y − p) in a report cell is off by 4 % at most with a
    # probability of 99 % (sd of a sample variance is √(2/4000) = 2.2 %); the largest of 6 is inside 10 %.
    preds = softmaxed(200, 3, 6)
    tally = Tally.from_predictions(preds, bins=2)
    rng = np.random.default_rng(0)
    y = (preds.p.cumsum(axis=1)[None, :, :-1] <= rng.random((4000, 200, 1))).sum(axis=2)
    residual = np.eye(3)[y] - preds.p
    upper = preds.p > 0.5
    sums = np.stack([np.where(side, residual, 0).sum(axis=1) for side in (~upper, upper)], axis=2).reshape(4000, 6)
    drawn, stated = np.cov(sums.T), tally.null_covariance
    scale = np.sqrt(np.outer(np.diag(stated), np.diag(stated)))
    assert (np.abs(drawn - stated) <= 0.1 * scale).all()


def test_the_null_covariance_is_absent_where_it_would_be_too_large():
    assert Tally.from_predictions(softmaxed(20, 20, 1), bins=100).null is not None
    assert Tally.from_predictions(softmaxed(20, 21, 1), bins=100).null is None


def test_canonical_is_kept_on_a_grid_that_is_named():
    preds = softmaxed(2000, 3, 8)
    tally = Tally.from_predictions(preds, grid=10, lenses=["groups:[[0],[1],[2]]", "top-2"])
    measure = BinnedError(SimplexGrid(10))
    for lens in ("canonical", "groups:[[0],[1],[2]]", "top-2"):
        (cells,), (rows,) = tally.views(lens), as_lens(lens).views(preds)
        assert measure.value(cells) == pytest.approx(measure.value(rows), abs=1e-12)
    assert "grid of 10" in tally.resolution


def test_lenses_that_cannot_be_kept_are_refused():
    preds = softmaxed(10, 3, 1)
    for lens in ("canonical", "top-2", "groups:[[0],[1],[2]]", Custom(lambda Y, P: (P, Y))):
        with pytest.raises(InputError, match="TO404"):
            Tally.from_predictions(preds, lenses=[lens])
    for bad in (0, 1.5, True):
        with pytest.raises(InputError, match="TO203"):
            Tally.from_predictions(preds, bins=bad)
        with pytest.raises(InputError, match="TO203"):
            Tally.from_predictions(preds, grid=bad)


def test_a_lens_that_was_not_kept_is_refused_with_those_that_were():
    tally = Tally.from_predictions(softmaxed(10, 3, 1))
    for lens in ("canonical", "top-2", "groups:[[0,1],[2]]", "positive"):
        with pytest.raises(InputError, match=r"TO405.*confidence, rank:2, rank:3, classwise, class:0"):
            tally.views(lens)
    with pytest.raises(InputError, match="TO405"):
        tally.score("spherical")
    with pytest.raises(InputError, match="TO204"):
        tally.views("nonsense")


def test_every_lens_it_lists_gives_views():
    for preds in (softmaxed(10, 2, 1), softmaxed(10, 4, 1)):
        tally = Tally.from_predictions(preds, lenses=["groups:[[0,1],[2,3]]"] if preds.k == 4 else [], grid=5)
        assert all(tally.views(lens) for lens in tally.lenses)


def test_bare_confidence_and_independent_labels():
    confidence = Predictions.from_confidence([0.9, 0.9, 0.4], [True, False, False], weight=[1, 2, 3])
    tally = Tally.from_predictions(confidence)
    assert tally.lenses == ("confidence",)
    assert tally.accuracy == pytest.approx(1 / 6)
    # Σw(c − z)² = 1·.01 + 2·.81 + 3·.16 = 2.11
    assert tally.score("brier")["mean"] == pytest.approx(2.11 / 6)

    labels = Predictions.from_multilabel([[0, 1, 1], [1, 1, 0]], [[0.2, 0.9, 0.5], [0.6, 0.7, 0.0]])
    tally = Tally.from_predictions(labels)
    assert tally.null is None
    for cell, row in zip(tally.views("classwise"), Classwise().views(labels), strict=True):
        assert Brier().value(cell) == pytest.approx(Brier().value(row))
    # The mean over labels: (.04 + .01 + .25)/3 and (.16 + .09 + 0)/3
    assert tally.score("brier")["mean"] == pytest.approx((0.1 + 0.25 / 3) / 2)
    with pytest.raises(InputError, match="TO405"):
        tally.views("confidence")


def test_each_group_has_a_tally_of_its_default_lens():
    rng = np.random.default_rng(2)
    for preds in (softmaxed(400, 2, 9), softmaxed(400, 4, 9)):
        site, ward = rng.integers(0, 3, 400), rng.choice(["x", "y"], 400)
        grouped = Predictions(preds.y, preds.p, group={"site": site, "ward": ward})
        tally = Tally.from_predictions(grouped)
        assert {column: list(values) for column, values in tally.groups.items()} == {
            "site": ["0", "1", "2"],
            "ward": ["x", "y"],
        }
        lens = "positive" if preds.k == 2 else "confidence"
        part, alone = tally.groups["site"]["1"], Tally.from_predictions(preds[site == 1])
        error = BinnedError(Uniform(15))
        assert error.value(part.views(lens)[0]) == pytest.approx(error.value(alone.views(lens)[0]), abs=1e-12)
        assert part.score("brier") == pytest.approx(alone.score("brier"))


def test_a_row_of_weight_zero_is_no_row_as_in_a_view():
    preds = Predictions([0, 1, 1], [0.2, 0.7, 0.4], weight=[1, 1, 0], group=["a", "a", "b"])
    tally = Tally.from_predictions(preds)
    assert (tally.n, list(tally.groups["group"])) == (2, ["a"])
    later = Tally.from_predictions(Predictions([1], [0.4], weight=[2], group=["b"]))
    assert {value: part.n for value, part in (tally + later).groups["group"].items()} == {"a": 2, "b": 1}


def test_rare_events_keep_their_resolution():
    # Between 1e-6 and 2e-6 a grid of 3840 even cells sees one cell; the halved ones tell them apart.
    tally = Tally.from_predictions(Predictions([0, 0], [1e-6, 4e-6]))
    assert len(tally.views("positive")[0].p) == 2
    assert len(Tally.from_predictions(Predictions([1, 1], [1 - 1e-6, 1 - 4e-6])).views("positive")[0].p) == 2


def test_many_classes_go_in_chunks():
    preds = softmaxed(200, 70, 4, np.float32)
    for cell, row in zip(Tally.from_predictions(preds).views("classwise"), Classwise().views(preds), strict=True):
        assert cell.name == row.name
        assert BinnedError(Uniform(15)).value(cell) == pytest.approx(BinnedError(Uniform(15)).value(row), abs=1e-12)


@pytest.mark.parametrize("name", ["calibration_in_the_large", "o_e"])
@pytest.mark.parametrize("kind", ["classes", "multilabel"])
def test_signed_errors_of_classes_are_not_averaged_from_a_tally_either(name: str, kind: str) -> None:
    P = np.full((6, 3), 1 / 3)
    preds = to.Predictions([0, 1, 2] * 2, P) if kind == "classes" else to.Predictions.from_multilabel(P > 0.5, P)
    for data in (preds, to.tally(preds, progress=False)):
        with pytest.raises(InputError, match=r"\[TO205\].*would cancel"):
            to.measure(data, name, lens="classwise", interval=None)
    with pytest.raises(InputError, match=r"\[TO205\].*would cancel"):
        measure_value(to.tally(preds, progress=False), name, lens="classwise")
