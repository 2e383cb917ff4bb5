"""Does the study of people join models and votes row for row, and does it show what is known of made crowds?"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from tests import reference
from trueodds.cli import main
from trueodds_studies.human import crowd_predictions, target_scores
from trueodds_studies.human.crowd_predictions import CrowdPredictions
from trueodds_studies.human.study import Plan, human, short_target_table

pytestmark = pytest.mark.slow

N = 300
NLI = ("roberta_base_0", "bert_base_uncased_1")


def made(where, seed=0, power=0.5):
    """A crowd Q of 100 votes, gold labels drawn from it, and two models: Q itself, and one that is too sure."""
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(np.ones(3), N)
    gold = (Q.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1)
    logs = np.log(Q)
    others = {
        crowd_predictions.MODELS[name].key: logs / power
        for name in crowd_predictions.MODELS
        if crowd_predictions.MODELS[name].crowd == "ChaosNLI"
    }
    np.savez(
        where / "chaosnli_snli.npz", label_count=rng.multinomial(100, Q), gold=gold,
        **{**others, "logits_roberta_base_0": logs},
    )  # fmt: skip
    return Q


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def Q(folder):
    return made(folder)


@pytest.fixture(scope="module")
def study(folder, Q):
    return human(methods=NLI, data=folder, plan=Plan(resamples=200))


def table(study, name):
    return next(part for part in study.also if part.name == f"human.{name}").rows


# Rows


def test_the_three_targets_are_gold_the_label_of_most_votes_and_all_votes():
    one = CrowdPredictions(np.full((2, 3), 1 / 3), np.array([[1, 4, 5], [4, 4, 2]]), np.array([0, 2]))
    assert one.with_target("gold").y.tolist() == [0, 2]
    assert one.with_target("majority").y.tolist() == [2, 0]  # the lowest of two
    assert one.with_target("votes").counts.tolist() == [10, 10]


def test_a_model_whose_rows_are_not_the_crowds_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.human.study.measure_cell", None)
    gold = np.array([0, 1, 1, 9])
    np.savez(tmp_path / "cifar10h.npz", counts=np.eye(10, dtype=int)[gold] * 50, labels=gold)
    np.savez(tmp_path / "plambda_cifar10_vgg16.npz", probs=np.full((4, 10), 0.1), labels=gold[::-1])
    with pytest.raises(to.InputError, match=r"TO803.*2 of 4 labels of plambda_cifar10_vgg16\.npz differ .*cifar10h"):
        human(methods=["vgg16"], data=tmp_path)
    np.savez(tmp_path / "plambda_cifar10_vgg16.npz", probs=np.full((3, 10), 0.1), labels=gold[:3])
    with pytest.raises(to.InputError, match=r"TO803.*3 rows for"):
        human(methods=["vgg16"], data=tmp_path)


def test_an_unknown_model_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(to.InputError, match=r"TO201.*vgg16"):
        human(methods=["vgg61"], data=tmp_path)
    with pytest.raises(to.InputError, match=r"TO802.*cifar10h\.npz"):
        human(methods=["vgg16"], data=tmp_path)


def test_some_rows_are_the_same_rows_of_model_and_crowd(folder, Q):
    full, some = (
        crowd_predictions.load_crowd_predictions(NLI[0], str(folder)),
        crowd_predictions.load_crowd_predictions(NLI[0], str(folder), 50, 3),
    )
    chosen = crowd_predictions.sample_rows(N, 50, 3)
    assert len(set(chosen.tolist())) == 50
    np.testing.assert_array_equal(some.P, full.P[chosen])
    np.testing.assert_array_equal(some.votes, crowd_predictions.load_crowd("ChaosNLI", str(folder), 50, 3)[0])
    np.testing.assert_allclose(full.P, Q, rtol=1e-12)


# What must come out of a crowd that is known


def test_the_crowd_itself_is_calibrated_against_votes_and_gold_and_not_against_the_majority(study):
    # Q says what a label drawn from it is; but the majority has the largest class nearly always.
    rows = {row["target"]: row for row in study.rows if row["model"] == NLI[0]}
    # A calibrated model's interval ends below its floor but in a fraction of the 5 % that it may miss.
    assert rows["votes"]["ECE low"] <= rows["votes"]["ECE noise floor"]
    assert rows["gold"]["ECE low"] <= rows["gold"]["ECE noise floor"]
    assert rows["majority"]["accuracy"] > 0.9
    assert rows["majority"]["ECE low"] > rows["majority"]["ECE noise floor"]
    overconfident = {row["target"]: row for row in study.rows if row["model"] == NLI[1]}
    assert overconfident["votes"]["ECE low"] > overconfident["votes"]["ECE noise floor"]


def test_the_crowd_itself_is_at_no_distance_from_the_crowd_and_scores_the_floors(folder, Q):
    rows = {
        row["measure"]: row
        for row in target_scores.score_votes(crowd_predictions.load_crowd_predictions(NLI[0], str(folder)), 200, 0)
    }
    distance = rows["human_distance"]
    # The mean of N rows whose standard error is about a quarter of the 95 % interval's width: 4.5 of them.
    assert abs(distance["value"]) < 4.5 * (distance["value high"] - distance["value low"]) / 4
    # Rows of about .03 ± .02, so that their mean is known to 4.5 · .02/√300 = .005.
    assert rows["DistCE"]["value"] == pytest.approx(rows["DistCE"]["value noise floor"], abs=0.005)
    # Its squared noise is Σ Q(1 − Q)/100, and a model equal to the crowd would have scored that.
    exact = (Q * (1 - Q)).sum(axis=1).mean() / 100
    # A row's estimate of Σ Q(1 − Q) is off by at most a tenth or so of 2/3 (one standard error of 100 votes' shares):
    # 4.5 of .07/√300 is .018, of a mean of .5.
    assert distance["vote_noise part"] == pytest.approx(exact, abs=0.018 / 100)
    assert distance["order part"] + distance["size part"] == pytest.approx(distance["value"], abs=1e-12)


def test_what_the_crowds_own_shares_score_is_what_fresh_votes_scatter(folder, Q):
    votes, _ = crowd_predictions.load_crowd("ChaosNLI", str(folder))
    V = votes / 100
    rng = np.random.default_rng(9)
    expected = np.mean([np.abs(rng.multinomial(100, V) / 100 - V).sum(axis=1).mean() / 2 for _ in range(20)])
    floors = target_scores.score_crowd(votes, 0)
    # Means over draws of rows of about .03 ± .02: standard error .02/√(20 · 300) here,
    # and a seventh of that in the study.
    assert floors["DistCE"] == pytest.approx(expected, abs=4.6 * 0.02 / (20 * N) ** 0.5)
    assert floors["human_distance"] == 0.0
    assert set(floors) == {name for name, _, _ in target_scores.VOTE_MEASURES}


def test_fewer_votes_raise_distce_and_leave_the_distance_where_it_is(study, folder, Q):
    overconfident = [row for row in table(study, "fewer") if row["model"] == NLI[1]]
    assert [row["votes"] for row in overconfident] == ["2", "5", "10", "20", "all"]
    d = crowd_predictions.load_crowd_predictions(NLI[1], str(folder)).P - Q
    truth = np.square(d).sum(axis=1).mean()
    # m of 100 multinomial votes are m multinomial votes.
    # An unbiased square is a linear term, of variance 4 dᵀΣd/m with Σ the covariance of one vote,
    # and an uncorrelated one of pairs of votes, 2 tr Σ²/(m(m − 1)).
    linear = 4 * ((Q * d**2).sum(axis=1) - (Q * d).sum(axis=1) ** 2).mean()
    pairs = 2 * ((Q**2 - 2 * Q**3).sum(axis=1) + (Q**2).sum(axis=1) ** 2).mean()
    for row in overconfident:
        m = 100 if row["votes"] == "all" else int(row["votes"])
        error = ((linear / m + pairs / (m * (m - 1))) / N) ** 0.5
        assert abs(row["human_distance"] - truth) < 4.5 * error
        # What is taken off a row lies in [0, (2/3)/(m − 1)] (m = 2: 1/2),
        # so its standard deviation is at most half of that.
        noise = (Q * (1 - Q)).sum(axis=1).mean() / m
        assert row["squared distance"] - row["human_distance"] == pytest.approx(noise, abs=4.5 / 3 / (m - 1) / N**0.5)
    assert overconfident[0]["DistCE"] > overconfident[2]["DistCE"] > overconfident[-1]["DistCE"]
    assert overconfident[0]["squared distance"] - truth > 0.15  # Σ Q(1 − Q)/2 is .25 on average


def test_votes_are_drawn_from_those_there_are():
    votes = np.array([[50, 0, 1], [20, 20, 11]])
    drawn_votes = target_scores.draw_votes(votes, 20, np.random.default_rng(0))
    assert drawn_votes.sum(axis=1).tolist() == [20, 20]
    assert (drawn_votes <= votes).all()
    # Mean of the first class over 400 draws: 20 · 50/51 and 20 · 20/51, standard deviations below 2.2: 4.5 of .11.
    many = np.mean([target_scores.draw_votes(votes, 20, np.random.default_rng(s)) for s in range(400)], axis=0)
    assert many[:, 0] == pytest.approx([1000 / 51, 400 / 51], abs=0.5)


def test_the_papers_own_example_and_what_entropy_and_order_overlook():
    # The paper's sample: .1, .2, .7 said and voted is right in every respect; the same numbers on other classes have
    # the same entropy; .3, .33, .37 has the same order.
    votes = np.array([[10, 20, 70]] * 3)
    P = np.array([[0.1, 0.2, 0.7], [0.7, 0.1, 0.2], [0.3, 0.33, 0.37]])
    claims = target_scores.shares_of_claims(CrowdPredictions(P, votes, np.array([2, 2, 2])))
    assert claims == pytest.approx(
        {
            "entropy alike": 2 / 3,
            "far though entropy alike": 1 / 3,
            "another class though entropy alike": 1 / 3,
            "order alike": 2 / 3,
            "far though order alike": 1 / 3,
        }
    )


# The study


def test_every_table_is_there_and_described(study):
    assert [table.name for table in study.also] == ["human.people", "human.crowds", "human.fewer", "human.paper"]
    assert [(row["model"], row["target"]) for row in study.rows] == [
        (m, t) for m in NLI for t in crowd_predictions.TARGETS
    ]
    assert json.loads(json.dumps(study.to_dict()))["study"] == "human"
    assert study.sentence.startswith("ChaosNLI: ECE ")
    assert "CIFAR" not in str(study)  # a crowd that was not asked for is not spoken of
    first = short_target_table(study.rows)[0]
    assert first["ECE"].endswith(f"({study.rows[0]['ECE noise floor']:.4f})")


def test_the_command_keeps_tables_and_pictures_and_goes_on_where_it_was(folder, Q, tmp_path, monkeypatch):
    words = ["study", "human", "--quick", "--method", NLI[0], "--data", str(folder), "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "squared distance from the vote distribution" in ran.output
    for name in ("human", "human.votes"):
        assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "human.targets.md").exists()
    before = (tmp_path / "human.csv").read_text(encoding="utf-8")

    def fail(*_):
        raise AssertionError("a model that was kept is measured again")

    monkeypatch.setattr("trueodds_studies.human.study.measure_cell", fail)
    human(quick=True, methods=NLI[:1], data=folder, out=tmp_path)
    assert (tmp_path / "human.csv").read_text(encoding="utf-8") == before


def test_a_study_resumed_with_other_votes_keeps_no_row_of_the_first(folder, Q, tmp_path):
    settings = {"methods": NLI[:1], "plan": Plan(rows=100, resamples=20), "out": tmp_path / "out"}
    first = human(data=folder, **settings)
    made(tmp_path, seed=1)
    assert human(data=tmp_path, **settings).rows != first.rows


@pytest.mark.reference
def test_real_models_join_and_give_the_numbers_of_the_table_of_provenance():
    data = str(reference.path("data/cifar10h.npz").parent)
    # accuracy against gold and majority as the README of the data prints them, to its four digits
    for name, target, right in (
        ("vgg16", "gold", 0.9359), ("resnet50", "gold", 0.95), ("wide_resnet_focal", "gold", 0.9599),
        ("roberta_base_0", "gold", 0.7246), ("roberta_base_0", "majority", 0.7384),
    ):  # fmt: skip
        preds = crowd_predictions.load_crowd_predictions(name, data).with_target(target)
        assert (preds.P.argmax(axis=1) == preds.y).mean() == pytest.approx(right, abs=6e-5)
    assert crowd_predictions.load_crowd_predictions("vgg16", data).votes.sum(axis=1).min() == 47
    assert len(crowd_predictions.hash_model_files(list(crowd_predictions.MODELS), data)) == 6
