"""Does the comparison of models order them as worked by hand, and does it see what is known of made models?"""

import json
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import kendalltau

import trueodds as to
from tests import reference
from trueodds.cli import main
from trueodds_studies.common import network_predictions
from trueodds_studies.model_comparison import ranking_tables, rankings
from trueodds_studies.model_comparison.study import Plan, model_comparison, opposite_pairs

N = 400
NETS = ("vgg16", "resnet50", "wide_resnet_focal")
FILES = {
    "vgg16": ("plambda_cifar10_vgg16.npz", "probs", "labels"),
    "resnet50": ("aigen_cifar10_resnet50.npz", "logits_test", "labels_test"),
    "wide_resnet_focal": ("aigen_focal_cifar10_wide_resnet.npz", "logits_test", "labels_test"),
}
SMALL = Plan(draws=12, redraws=49, resamples=100)


def made(where, seed=0):
    """vgg16 says the law that the labels are drawn from, the others 1.5 and 3 times its log-odds."""
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(np.full(10, 0.4), N).clip(1e-6)
    Q /= Q.sum(axis=1, keepdims=True)
    y = (Q.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1).clip(0, 9)
    for (name, key, labels), power in zip(FILES.values(), (1, 1.5, 3), strict=True):
        np.savez(where / name, **{key: Q if power == 1 else power * np.log(Q), labels: y})
    return Q


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("data")
    made(where)
    return where


@pytest.fixture(scope="module")
def study(folder):
    return model_comparison(quick=True, methods=NETS, data=folder, plan=SMALL)


def example_comparison(values, halves, settled, measure="Brier"):
    """What is found of a measure of three nets a, b, c."""
    pairs = [
        {"pair": list(pair), "difference": values[i] - values[j], "settled": is_settled}
        for (i, j), pair, is_settled in zip(combinations(range(3), 2), combinations("abc", 2), settled, strict=True)
    ]
    models = [
        {"net": net, "value": value, "noise floor": 0.1, "low": 0, "high": 1}
        for net, value in zip("abc", values, strict=True)
    ]
    return {"measure": measure, "n": 10, "models": models, "pairs": pairs, "halves": halves}


HAND = example_comparison(
    [0.3, 0.1, 0.2], [[0.3, 0.1, 0.2], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3], [0.3, 0.1, 0.2]], [True, False, False]
)
OTHER = example_comparison([0.1, 0.3, 0.2], [[0.1, 0.3, 0.2]] * 4, [True, True, False], "log loss")


# Orders, by hand


def test_an_order_is_shown_with_what_is_settled_between_neighbors():
    # b .1, c .2, a .3; of the pairs ab, ac, bc only ab is settled, and those two are no neighbors.
    # Of the other ab and ac are.
    assert ranking_tables.format_order(HAND) == "b ? c ? a"
    assert ranking_tables.format_order(OTHER) == "a < c ? b"
    assert ranking_tables.settled_pairs(HAND) == {("b", "a"): True, ("c", "a"): False, ("b", "c"): False}


def test_how_often_a_pair_turns_is_counted_over_the_halves():
    # a and b turn in the third half, a and c there too, b and c in the second
    assert ranking_tables.pair_reversal_rates(HAND) == {("b", "a"): 0.25, ("c", "a"): 0.25, ("b", "c"): 0.25}
    (row,) = ranking_tables.order_table([HAND])
    assert row["established"] == "1 of 3"
    assert row["reversed"] == row["maximum reversed, established"] == row["mean reversed, others"] == 0.25


def test_tau_is_that_of_another_program_and_its_range_is_over_the_same_halves():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 30, 7))
    want = [kendalltau(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(rankings.kendall_tau(a, b), want, atol=1e-12)
    # b < c < a against a < c < b: all three pairs stand the other way round. Halves against a < c < b: −1;
    # −1/3 (b, c alike only); 1/3 (bc not alike); −1.
    # Of these −1, −1, −1/3, 1/3 the 2.5 % quantile is −1 and the 97.5 % one 1/3 − .075 · 2/3.
    assert ranking_tables.tau_interval(HAND, OTHER) == pytest.approx((-1, -1, 1 / 3 - 0.075 * 2 / 3))


def test_a_pair_that_two_measures_settle_in_opposite_ways_is_named():
    assert opposite_pairs([HAND, OTHER]) == ["a and b"]
    assert opposite_pairs([HAND]) == []
    ab, _, bc = ranking_tables.pair_table([HAND, OTHER])
    assert (ab["smaller"], ab["established"]) == ("1 to 1", "1 to 1")
    assert (bc["smaller"], bc["established"]) == ("1 to 1", "0 to 0")


def test_places_begin_with_the_smallest_and_their_range_is_over_the_halves():
    first = ranking_tables.value_table([HAND])[0]
    assert (first["rank"], first["rank low"], first["rank high"]) == (3, 1, 3)


# p-values, by hand


def test_the_pair_that_the_paper_warns_of_is_found_by_hand():
    # errors .3 > .2 > .1, p .2, .01, .6: the first has the larger error and passes, the second is rejected
    errors, p = np.array([[0.3, 0.2, 0.1]]), np.array([[0.2, 0.01, 0.6]])
    assert np.argwhere(rankings.reversed_pairs(errors, p)).tolist() == [[0, 0, 1]]
    assert ranking_tables.contradiction_share(errors, p) == pytest.approx(1 / 3)
    assert ranking_tables.tied_share(np.array([[0.01, 0.01, 0.5], [0.01, 0.01, 0.01]])) == pytest.approx(4 / 6)


# Halves


def test_halves_are_the_same_for_all_nets_and_all_measures_and_scatter_as_fresh_rows_do(folder):
    nets = rankings.load_models(NETS, str(folder))
    brier = rankings.values_in_halves(rankings.MEASURES["Brier"], nets, 60, 0)
    twin = rankings.values_in_halves(rankings.MEASURES["Brier"], {"x": nets["vgg16"]}, 60, 0)
    np.testing.assert_array_equal(brier[:, 0], twin[:, 0])
    rows = np.square(nets["vgg16"].P - np.eye(10)[nets["vgg16"].y]).sum(axis=1)
    # A mean of half the rows has variance σ²/n about that of all;
    # the sd of 60 draws is off by 1/√120, 4 of which are .37.
    assert brier[:, 0].std(ddof=1) == pytest.approx(rows.std(ddof=1) / N**0.5, rel=0.37)


# The line-up


def test_nets_of_other_rows_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.model_comparison.study.measure_cell", None)
    made(tmp_path)
    name, key, labels = FILES["resnet50"]
    arrays = dict(np.load(tmp_path / name))
    np.savez(tmp_path / name, **{key: arrays[key], labels: np.roll(arrays[labels], 1)})
    with pytest.raises(to.InputError, match=r"TO803.* labels of aigen_cifar10_resnet50\.npz differ from .*plambda"):
        model_comparison(methods=NETS, data=tmp_path)


def test_an_unknown_net_and_one_alone_are_refused(tmp_path):
    with pytest.raises(to.InputError, match=r"TO201.*vgg16"):
        model_comparison(methods=["vgg61", "vgg16"], data=tmp_path)
    with pytest.raises(to.InputError, match=r"TO205.*two models"):
        model_comparison(methods=["vgg16", "vgg16"], data=tmp_path)


# The study


@pytest.mark.slow
def test_no_measure_settles_that_another_net_is_better_than_the_law_itself_and_the_score_tells_the_worst(study):
    # Raw errors may put a sharper net first, as it is less noisy; joint 95 % intervals then leave the pair open.
    pairs = next(table for table in study.also if table.name == "model_comparison.pairs").rows
    for row in pairs:
        if row["first"] == "vgg16":
            assert row["established"].endswith(" to 0")
    order = next(table for table in study.also if table.name == "model_comparison.orders").rows
    score = next(row["order"] for row in order if row["measure"] == "Brier")
    assert score.startswith("vgg16 ")
    assert score.endswith("< wide_resnet_focal")
    last = next(table for table in study.also if table.name == "model_comparison.pvalues").rows[-1]
    assert last["n"] == N
    assert last["wide_resnet_focal"].endswith("rejects 100%")


def test_every_table_is_there_and_described(study):
    names = ("orders", "nets", "pairs", "tau", "pvalues", "paper")
    assert [table.name for table in study.also] == [f"model_comparison.{name}" for name in names]
    assert len(study.rows) == len(rankings.QUICK_MEASURES) * len(NETS)
    assert json.loads(json.dumps(study.to_dict()))["study"] == "model_comparison"
    assert study.sentence.startswith("3 networks, 4 measures: raw errors establish ")
    assert all(table.sentence for table in study.also)


@pytest.mark.slow
def test_the_command_keeps_tables_and_pictures_and_goes_on_where_it_was(folder, tmp_path, monkeypatch):
    words = ["study", "model_comparison", "--quick", "--data", str(folder), "--out", str(tmp_path)]
    words += [word for net in NETS[:2] for word in ("--method", net)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "Kendall's tau of two rankings" in ran.output
    before = (tmp_path / "model_comparison.csv").read_text(encoding="utf-8")
    for name in ("ranks", "tau", "lineup"):
        assert ET.parse(tmp_path / f"model_comparison.{name}.svg").getroot().tag.endswith("svg")

    def fail(*_):
        raise AssertionError("a measure that was kept is measured again")

    monkeypatch.setattr("trueodds_studies.model_comparison.study.measure_cell", fail)
    model_comparison(quick=True, methods=NETS[:2], data=folder, out=tmp_path)
    assert (tmp_path / "model_comparison.csv").read_text(encoding="utf-8") == before


@pytest.mark.usefixtures("only_tables")
def test_a_study_resumed_with_other_labels_keeps_no_row_of_the_first(folder, tmp_path):
    settings = {"quick": True, "methods": NETS[:2], "plan": Plan(rows=60, draws=2, redraws=9, resamples=20)}
    first = model_comparison(data=folder, out=tmp_path / "out", **settings)
    made(tmp_path, seed=1)
    assert model_comparison(data=tmp_path, out=tmp_path / "out", **settings).rows != first.rows


@pytest.mark.reference
def test_seven_real_nets_speak_of_the_same_rows_and_some_pairs_are_not_settled():
    data = str(reference.path("data/plambda_cifar10_vgg16.npz").parent)
    nets = rankings.load_models(tuple(network_predictions.CIFAR10_NETWORKS), data)
    assert len(nets) == 7
    assert {preds.n for preds in nets.values()} == {10000}
    ranking = rankings.rank_models("ECE, 15 bins", nets, 4, 500, 0)
    place = dict(
        zip(
            ranking_tables.network_names(ranking),
            ranking_tables.rank_values(ranking_tables.model_values(ranking)),
            strict=True,
        )
    )
    assert place["wide_resnet_focal"] == 1
    assert place["vgg16_bn"] == 7
    settled = ranking_tables.settled_pairs(ranking)
    assert settled["wide_resnet_focal", "vgg16_bn"]
    assert not settled["vgg16", "densenet121"]
