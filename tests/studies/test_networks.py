"""Does the study of networks read files correctly, repeat the authors' numbers, and describe made networks rightly?"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from tests import reference
from trueodds.cli import main
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common import network_predictions
from trueodds_studies.networks import network_errors
from trueodds_studies.networks.study import LENSES, Plan, has_simplex_diagram, networks

N = 600
SMALL = Plan(resamples=100, redraws=99)
NLI = ("roberta_base_0", "bert_base_uncased_1")


def made(where, seed=0):
    """Three outcomes: one net says the law that the labels are drawn from, the others twice its log-odds."""
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(np.ones(3), N)
    gold = (Q.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1)
    logits = {f"logits_{net}": np.log(Q) * 2 for net in network_predictions._NLI}
    np.savez(where / "chaosnli_snli.npz", gold=gold, **{**logits, "logits_roberta_base_0": np.log(Q)})
    return Q


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("data")
    made(where)
    return where


@pytest.fixture(scope="module")
def study(folder):
    return networks(methods=NLI, data=folder, plan=SMALL)


def rows(study, net, lens, distance="tv"):
    return [row for row in study.rows if (row["network"], row["lens"], row["distance"]) == (net, lens, distance)]


# The nets


def test_the_groups_of_ten_classes_are_those_of_the_papers_figure_1():
    assert network_predictions.groups_lens(10) == "groups:[[0,1,2],[3,4,5],[6,7,8,9]]"
    assert [len(group) for group in network_predictions.three_class_groups(100)] == [33, 33, 34]
    assert sorted(sum(network_predictions.three_class_groups(9), ())) == list(range(9))


def test_what_can_be_looked_at_depends_on_what_the_file_holds():
    lenses = {name: tuple(network_errors.network_lenses(net)) for name, net in network_predictions.NETWORKS.items()}
    assert lenses["vgg16"] == ("confidence", "groups", "canonical")
    assert lenses["roberta_base_0"] == ("confidence", "canonical")  # three classes are no groups
    assert lenses["imagenet_resnet152"] == ("confidence",)
    assert not has_simplex_diagram("adrenalmnist_resnet50")  # two classes lie on a line


def test_an_unknown_net_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(to.InputError, match=r"TO201.*vgg16"):
        networks(methods=["vgg61"], data=tmp_path)
    with pytest.raises(to.InputError, match=r"TO802.*psr_emotion_final\.npz"):
        networks(methods=["emotion"], data=tmp_path)


def test_a_confidence_alone_is_read_with_whether_it_was_right(tmp_path):
    net = network_predictions.NETWORKS["imagenet_resnet152"]
    np.savez(tmp_path / net.file, **{net.key: np.array([0.9, 0.6]), net.labels: np.array([1, 0])})
    assert network_errors.accuracy_and_confidence(net.predictions(str(tmp_path))) == pytest.approx((0.5, 0.75))


# What is measured


def test_an_error_by_hand_in_both_distances():
    # 40 rows said (.7, .2, .1), of which 20, 12, 8 came: one bin, off by (−.2, .1, .1): tv .2, squares .04 + .01 + .01.
    preds = to.Predictions(np.repeat([0, 1, 2], [20, 12, 8]), np.tile([0.7, 0.2, 0.1], (40, 1)))
    got = network_errors.error_rows(network_predictions.NETWORKS["roberta_base_0"], preds, 50, 99, 0)
    for row in got:
        # Of a confidence it is a pair: .2 off, and .2 off: squares .08.
        squares = 0.08 if row["lens"] == "confidence" else 0.06
        assert row["value"] == pytest.approx(0.2 if row["distance"] == "tv" else squares, abs=1e-12)
    assert len(got) == 2 * 3 * 2


def test_the_deviation_where_most_predictions_lie_by_hand():
    # Three corners said for sure and true, and one cell of 10 rows in the middle said (.4, .3, .3) with all of class 0:
    # total variation .6 there, and 0 in the three fullest cells.
    P = np.vstack([np.repeat(np.eye(3), 20, axis=0), np.tile([0.4, 0.3, 0.3], (10, 1))])
    y = np.repeat([0, 1, 2, 0], [20, 20, 20, 10])
    summary = network_errors.frequent_cell_errors(network_predictions.NETWORKS["roberta_base_0"], to.Predictions(y, P))
    assert summary["there"] == 0
    assert summary["elsewhere"] == pytest.approx(0.6)
    assert summary["cells"] == 4
    assert summary["beyond"] == 1  # 10 of 10 at .4 has p = .0001
    assert summary["beyond there"] == 0


def test_the_true_distribution_is_near_its_noise_floor_and_an_overconfident_one_is_not(study):
    for lens in ("confidence", "canonical"):
        for row in rows(study, NLI[0], lens):
            # p ≤ .01 comes in one calibrated net of a hundred, the seed is fixed.
            assert row["p"] > 0.01
            assert row["low"] <= row["noise floor"]
        for row in rows(study, NLI[1], lens):
            assert row["p"] == 0.01  # the floor of 99 redraws
            assert row["value"] > 1.5 * row["noise floor"]


def test_squares_have_no_interval_and_a_floor(study):
    for row in rows(study, NLI[0], "canonical", "sq-euclidean"):
        assert row["low"] is None
        assert row["noise floor"] > 0


# The study


def test_every_table_is_there_and_described(study):
    assert [table.name for table in study.also] == [
        f"networks.{name}" for name in ("errors", "squares", "nets", "paper")
    ]
    assert json.loads(json.dumps(study.to_dict()))["study"] == "networks"
    assert study.sentence.startswith("Error of 2 networks in total variation, over 3 partitions: confidence ")
    assert len(study.also[0].rows) == 4
    assert "groups" not in study.sentence  # three classes have none


@pytest.mark.slow
def test_the_command_keeps_tables_and_pictures_and_goes_on_where_it_was(folder, tmp_path, monkeypatch):
    words = ["study", "networks", "--quick", "--method", NLI[0], "--data", str(folder), "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "Error of 1 network in total variation" in ran.output
    for name in (NLI[0], "lines.uniform", "lines.tree", "triangles.uniform", "triangles.tree"):
        assert (tmp_path / f"networks.{name}.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "networks.csv").read_text(encoding="utf-8")

    def fail(*_):
        raise AssertionError("a net that was kept is measured again")

    monkeypatch.setattr("trueodds_studies.networks.study.measure_cell", fail)
    networks(quick=True, methods=NLI[:1], data=folder, out=tmp_path)
    assert (tmp_path / "networks.csv").read_text(encoding="utf-8") == before


@pytest.mark.slow
def test_a_study_resumed_with_other_labels_keeps_no_row_of_the_first(folder, tmp_path):
    settings = {"methods": NLI[:1], "plan": Plan(rows=100, resamples=20, redraws=19), "out": tmp_path / "out"}
    first = networks(data=folder, **settings)
    made(tmp_path, seed=1)
    assert networks(data=tmp_path, **settings).rows != first.rows


@pytest.mark.reference
@pytest.mark.parametrize("net", list(network_errors.PUBLISHED_ERRORS))
def test_all_classes_of_four_nets_give_the_numbers_of_the_authors_program(net):
    # golden anchors, cifar10: Widmann et al. (2019), read from decimal text; half a float32 ulp below 1 is 3e-8
    truth = reference.golden("anchors/golden.json")["cifar10"][net]
    preds = network_predictions.NETWORKS[net].predictions(str(reference.path("data/widmann_cifar10_4nets.npz").parent))
    for bins, key in (("uniform 10", "ECE_uniform"), ("tree, 100 rows", "ECE_dynamic")):
        got = to.measure(preds, "ece", lens="canonical", interval=None, **network_errors.PARTITIONS[bins])
        assert got.value == pytest.approx(truth[key], abs=1e-8)
        assert network_errors.PUBLISHED_ERRORS[net][bins] == truth[key]


@pytest.mark.reference
def test_the_groups_of_figure_1_in_25_and_100_cells_to_eight_digits():
    # golden anchors, cifar_lenses: densenet121 in the paper's groups, computed apart from this library
    truth = reference.golden("anchors/golden.json")["analytic_and_literal"]["cifar_lenses"]["densenet121"]
    preds = network_predictions.NETWORKS["densenet121"].predictions(
        str(reference.path("data/widmann_cifar10_4nets.npz").parent)
    )
    for bins in (5, 10):
        table = to.draw(
            preds, "simplex", lens=network_predictions.groups_lens(10), partition="simplex-grid", bins=bins
        ).table
        assert len(table["cell"]) == pytest.approx(truth[f"fig1_groups_nonempty_k{bins}"], abs=0)
        error = float((table["share"] * table["distance"]).sum())
        assert error == pytest.approx(truth[f"fig1_groups_tv_k{bins}"], abs=3e-8)


@pytest.mark.reference
def test_on_cifar10_18_of_20_stray_cells_are_the_three_fullest_and_their_arrows_the_shorter():
    data = str(reference.path("data/psr_emotion_final.npz").parent)
    summaries = [
        network_errors.frequent_cell_errors(net, net.predictions(data))
        for net in network_predictions.CIFAR10_NETWORKS.values()
    ]
    assert (sum(summary["beyond"] for summary in summaries), sum(summary["beyond there"] for summary in summaries)) == (
        20,
        18,
    )
    assert all(summary["there"] < summary["elsewhere"] for summary in summaries)


@pytest.mark.reference
def test_all_but_two_nets_are_surer_than_right_by_more_than_chance():
    data = str(reference.path("data/psr_emotion_final.npz").parent)
    excess = {}
    for name, net in network_predictions.NETWORKS.items():
        (view,) = as_lens("confidence").views(net.predictions(data))
        # Standard error of the mean outcome if the confidences were right.
        excess[name] = (view.p.mean() - view.y.mean()) / (np.sqrt((view.p * (1 - view.p)).sum()) / len(view.p))
    assert {name for name, z in excess.items() if z < 3} == {"wide_resnet_focal", "imagenet_efficientnet_b7"}
    assert excess["wide_resnet_focal"] < -3
    assert abs(excess["imagenet_efficientnet_b7"]) < 1.96


@pytest.mark.reference
def test_real_nets_have_the_accuracy_and_size_of_the_table_of_provenance():
    data = str(reference.path("data/psr_emotion_final.npz").parent)
    for name, n, right in (
        ("emotion", 5473, 0.5368), ("pathmnist_resnet50", 7180, 0.9075), ("adrenalmnist_resnet50", 298, 0.7852),
        ("agnews_gpt2", 7600, 0.4153), ("resnet110", 10000, 0.7490), ("imagenet_resnet152", 50000, 0.7833),
        ("resnet50", 10000, 0.95), ("wide_resnet_focal", 10000, 0.9599), ("roberta_base_0", 1514, 0.7246),
    ):  # fmt: skip
        preds = network_predictions.NETWORKS[name].predictions(data)
        assert preds.n == n
        assert network_errors.accuracy_and_confidence(preds)[0] == pytest.approx(right, abs=6e-5)
    assert LENSES == ("confidence", "groups", "canonical")
