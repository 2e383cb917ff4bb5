"""Does the study of images split, fit, judge and sum up as it says, and are the paper's images what it says?"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from tests import reference
from trueodds.cli import main
from trueodds_studies.common import network_predictions
from trueodds_studies.images import published_numbers, split_results
from trueodds_studies.images.split_results import ALL_METHODS, estimate_parameters, vary_min_prob
from trueodds_studies.images.study import Cell, Plan, choose_images, find_images, images, measure_cell

pytestmark = pytest.mark.slow

N = 1000


def drawn(rng, P):
    return (P.cumsum(axis=1) < rng.random(len(P))[:, None]).sum(axis=1).clip(max=P.shape[1] - 1)


def overconfident(seed, n, k, power=0.6):
    """Labels that follow p^power, and what was said."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.5), n)
    P = (P + 1e-4) / (P + 1e-4).sum(axis=1, keepdims=True)
    true = P**power / (P**power).sum(axis=1, keepdims=True)
    return drawn(rng, true), P


def made(where, seed=0):
    """Files of the names and shapes that the study reads, of made predictions."""
    y, P = overconfident(seed, N, 10)
    P[7] = (0.94, *[0.06 / 9] * 9)  # an image such as the paper shows
    np.savez(where / "plambda_cifar10_vgg16.npz", probs=P.astype(np.float32), labels=y.astype(np.int16))
    others = {key: P.astype(np.float32) for _, key in list(network_predictions.CIFAR10_FILES.values())[1:]}
    np.savez(where / "widmann_cifar10_4nets.npz", labels=y.astype(np.int16), **others)
    return where


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def study(folder):
    return images(methods=["vgg16", "resnet18"], data=folder, plan=Plan(splits=2))


# Splits


def test_a_split_is_eight_tenths_and_the_rest_and_differs_from_the_next():
    learn, evaluation = network_predictions.split_rows(10_000, 0, 0)
    assert (len(learn), len(evaluation)) == (8000, 2000)
    assert sorted([*learn, *evaluation]) == list(range(10_000))
    assert np.array_equal(learn, network_predictions.split_rows(10_000, 0, 0)[0])
    # Of 2,000 rows held out a fifth, 400, are held out again: standard deviation 16, five of them 80.
    assert abs(len(np.intersect1d(evaluation, network_predictions.split_rows(10_000, 0, 1)[1])) - 400) < 80


# Parameters


def test_the_standard_error_of_delta_is_that_of_the_hessian_in_delta_as_in_the_paper():
    y, P = overconfident(1, 500, 3)
    rows = estimate_parameters(to.test(to.Predictions(y, P), "mcllo", min_prob=1e-9))
    estimates = np.array([row[name] for row in rows for name in ("delta", "gamma")])

    def loss(theta):
        eta = np.zeros((len(P), 3))
        eta[:, :2] = np.log(theta[::2]) + theta[1::2] * np.log(P[:, :2] / P[:, 2:])
        return float((np.log(np.exp(eta).sum(axis=1)) - eta[np.arange(len(y)), y]).sum())

    # Second differences with steps of 1e-3: errors of order 1e-6 of the fourth derivatives.
    steps = 1e-3 * np.eye(4)
    hessian = [
        [
            (loss(estimates + a + b) - loss(estimates + a - b) - loss(estimates - a + b) + loss(estimates - a - b))
            / 4e-6
            for b in steps
        ]
        for a in steps
    ]
    slope = [(loss(estimates + a) - loss(estimates - a)) / 2e-3 for a in steps]
    assert np.abs(slope).max() < 1e-3
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert [row[f"{name}_se"] for row in rows for name in ("delta", "gamma")] == pytest.approx(errors, rel=1e-3)


def test_the_parameters_of_p_to_the_power_are_found(study):
    # Labels follow p^0.6: every γ is 0.6 and every δ is 1. Of the nine pairs of the first net each estimate is within
    # four standard errors but with probability 18 · 6e-5.
    rows = next(table for table in study.also if table.name == "images.parameters").rows[:9]
    assert [row["class"] for row in rows] == list(network_predictions.CIFAR10_CLASSES[:-1])
    for row in rows:
        assert abs(row["γ"] - 0.6) < 4 * row["γ ±"]
        assert abs(np.log(row["δ"])) < 4 * row["δ ±"] / row["δ"]
        assert row["minimum γ"] <= row["γ"] <= row["maximum γ"]


# Floors


def test_zeros_are_counted_and_the_floor_moves_the_test_only_where_there_are_some():
    y, P = overconfident(2, 300, 3)
    clean = vary_min_prob(to.Predictions(y, P))
    assert (clean["zeros"], clean["outcomes at 0"], clean["rows below"]) == (0, 0, 0)
    assert clean["smallest above 0"] == P.min()
    assert clean["statistic at 1e-07"] == clean["statistic at 1e-06"] == clean["statistic at 1e-05"]
    P[0], y[0] = (0.0, 0.5, 0.5), 0
    P[1], y[1] = (0.0, 0.0, 1.0), 2
    zeros = vary_min_prob(to.Predictions(y, P))
    assert (zeros["zeros"], zeros["outcomes at 0"], zeros["rows below"]) == (3, 1, 2)
    assert zeros["statistic at 1e-07"] > zeros["statistic at 1e-05"]


# Many splits


def cell(loss, accuracy):
    row = {"n": 2, "p": 0.04, "ECE": 0.1, "log loss": 1.0, "accuracy": 0.5, "changed": 0.0}
    methods = [{**row, "method": method.label} for method in ALL_METHODS]
    methods[1] |= {"log loss": loss, "accuracy": accuracy, "p": accuracy}
    return {"net": "vgg16", "split": loss, "methods": methods, "learning": {"n": 8}}


def test_means_and_errors_over_splits_are_worked_by_hand():
    row = split_results.method_means([cell(0.7, 0.5), cell(0.9, 0.04)])[1]
    # Gains 0.3 and 0.1: mean 0.2, standard deviation 0.2/√2, standard error 0.1. Changes 0 and −0.46: −0.23 ± 0.23.
    assert (row["gain"], row["gain ±"]) == pytest.approx((0.2, 0.1))
    assert (row["accuracy change"], row["accuracy change ±"]) == pytest.approx((-0.23, 0.23))
    assert (row["median p"], row["rejected"]) == pytest.approx((0.27, 0.5))
    formatted = split_results.short_table([row])[0]
    assert (formatted["gain"], formatted["change of accuracy"], formatted["rejected"]) == (
        "0.2000 ± 0.1000", "-23.00 ± 23.00", "50%",
    )  # fmt: skip


def test_an_infinite_loss_stays_infinite():
    row = split_results.method_means([cell(0.7, 0.5), cell(float("inf"), 0.5)])[1]
    assert (row["log loss"], row["gain"], row["gain ±"]) == (float("inf"), float("-inf"), None)


def test_a_map_of_the_right_kind_is_rejected_as_often_as_stated():
    # K = 3, 400 rows to learn from and 200 held out: the statistic follows 1.5 χ² with 4 degrees of freedom, mean 6 and
    # standard deviation 1.5 √8, so that the mean of 200 is within four standard errors of 0.3. Rejected, by the
    # survival function of χ²: (1 + x) exp(−x) at x = 9.488/3, 17.6 % instead of 5.
    x = 9.487729036781154 / 3
    assert split_results.false_rejection_rate(400, 200, 3) == pytest.approx((1 + x) * np.exp(-x))
    rng, statistics = np.random.default_rng(0), []
    for _ in range(200):
        P = rng.dirichlet(np.ones(3), 600)
        true = P**0.7 / (P**0.7).sum(axis=1, keepdims=True)
        y = drawn(rng, true)
        Q = to.fit(to.Predictions(y[:400], P[:400]), "mcllo").predict_proba(P[400:])
        statistics.append(to.test(to.Predictions(y[400:], Q), "mcllo", min_prob=1e-6).statistic)
    assert abs(np.mean(statistics) - 6) < 1.2


# Single images


def test_images_called_airplane_with_94_percent_are_found_and_the_nearest_to_80_is_shown():
    P = np.array([[0.941, 0.059], [0.06, 0.94], [0.9352, 0.0648], [0.9449, 0.0551]], dtype=np.float32)
    assert find_images(P).tolist() == [0, 2, 3]
    Q = np.array([[0.9, 0.1], [0.8, 0.2], [0.81, 0.19], [0.7, 0.3]])
    assert choose_images(4, find_images(P), Q) == [(2, "nearest to the paper's 0.94 → 0.80")]
    assert [image for image, _ in choose_images(5000, find_images(P)[:0], Q)] == [4526, 4525]


# The study


def test_one_row_per_net_and_method_with_what_must_hold_of_each(study):
    rows = {(row["network"], row["method"]): row for row in study.rows}
    assert list(rows) == [(net, method.label) for net in ("vgg16", "resnet18") for method in ALL_METHODS]
    none, temperature, mcllo = (rows["vgg16", method] for method in ("none", "temperature on log p", "MCLLO"))
    assert (none["gain"], none["changed"], none["n"]) == (0, 0, 200)
    assert temperature["changed"] == temperature["accuracy change"] == 0
    # One temperature is the whole truth here, so that 18 parameters gain no more than it in expectation.
    assert temperature["gain"] > mcllo["gain"] > 0
    assert none["rejected"] == 1
    # Both nets are the same predictions on the same splits.
    assert rows["resnet18", "MCLLO"] == {**mcllo, "network": "resnet18"}


def test_every_further_table_is_there_and_described(study):
    assert [table.name for table in study.also] == [
        "images.paper", "images.paper.parameters", "images.parameters", "images.left", "images.floors", "images.single",
    ]  # fmt: skip
    text = str(study)
    assert all(table.sentence in text for table in study.also)
    assert [row["method"] for row in study.also[0].rows][:3] == ["none, fitting rows", "none, fitting rows", "none"]
    assert json.loads(json.dumps(study.to_dict()))["study"] == "images"


def test_without_the_papers_net_no_number_stands_beside_the_papers(folder):
    study = images(methods=["resnet18"], data=folder, plan=Plan(splits=1))
    assert "images.paper" not in [table.name for table in study.also]


def test_the_command_keeps_tables_and_pictures_and_goes_on_where_it_was(folder, tmp_path, monkeypatch):
    words = ["study", "images", "--quick", "--method", "vgg16", "--data", str(folder), "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, words, standalone_mode=False)
    assert "MCLLO gains" in ran.output
    for name in ("trade", "single", "reliability"):
        assert ET.parse(tmp_path / f"images.{name}.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "images.methods.md").exists()

    def fail(*_):
        raise AssertionError("a cell that was kept is measured again")

    before = (tmp_path / "images.csv").read_text(encoding="utf-8")
    monkeypatch.setattr("trueodds_studies.images.study.measure_split", fail)
    images(quick=True, methods=["vgg16"], data=folder, out=tmp_path)
    assert (tmp_path / "images.csv").read_text(encoding="utf-8") == before


@pytest.mark.usefixtures("only_tables")
def test_a_study_resumed_with_other_data_keeps_no_row_of_the_first(folder, tmp_path):
    other = made(tmp_path, seed=5)
    settings = {"methods": ["vgg16"], "plan": Plan(splits=1)}
    out = tmp_path / "out"
    first = images(data=folder, out=out, **settings).to_dict()
    second = images(data=other, out=out, **settings).to_dict()
    assert first["rows"] != second["rows"]
    assert second == images(data=other, **settings).to_dict()
    # In one folder too, where another file takes the place of what was read before.
    assert images(data=made(other, seed=0), out=out, **settings).to_dict() == first


@pytest.mark.usefixtures("only_tables")
def test_one_more_net_keeps_the_rows_of_the_others(folder, tmp_path, monkeypatch):
    settings, measured_nets = {"data": folder, "plan": Plan(splits=1), "out": tmp_path}, []
    images(methods=["vgg16"], **settings)
    monkeypatch.setattr(
        "trueodds_studies.images.study.measure_cell",
        lambda cell, plan: measured_nets.append(cell.net) or measure_cell(cell, plan),
    )
    images(methods=["vgg16", "resnet18"], **settings)
    assert measured_nets == ["resnet18"]


def test_a_file_without_the_net_is_refused_before_anything_is_measured(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.images.study.measure_cell", None)
    np.savez(tmp_path / "widmann_cifar10_4nets.npz", labels=np.zeros(3, dtype=int), probs_resnet18=np.eye(3))
    with pytest.raises(to.InputError, match=r"TO803.*no probs_vgg16_bn in .*which holds labels, probs_resnet18"):
        images(methods=["vgg16_bn"], data=tmp_path, quick=True)
    (tmp_path / "plambda_cifar10_vgg16.npz").write_text("moved", encoding="utf-8")
    ran = CliRunner().invoke(main, ["study", "images", "--method", "vgg16", "--data", str(tmp_path)])
    assert ran.exit_code == 2
    assert "TO803" in ran.output


@pytest.mark.parametrize(
    ("gains", "errors", "words"),
    [
        ((0.0481,), (0.03, 0.02), "net0: MCLLO gains 0.048 nats and"),
        ((0.0481, 0.0482), (0.03, 0.02), "Over 2 networks, MCLLO gains 0.048 nats and"),
        ((0.0481, -0.01), (0.03, 0.02), "Over 2 networks, MCLLO gains -0.010 to 0.048 nats and"),
        ((-0.02, -0.01), (0.03, 0.04), "Over 2 networks, MCLLO loses 0.010 to 0.020 nats and"),
    ],
)
def test_the_sentence_follows_the_numbers(gains, errors, words):
    rows = [
        {"network": f"net{i}", "method": method, "gain": gain, "rejected": 0.5, "ECE": errors[method != "none"]}
        for i, gain in enumerate(gains)
        for method in ("none", "MCLLO", "temperature on log p")
    ]
    text = split_results.summarize(rows)
    assert text.startswith(words)
    assert text.endswith(f"MCLLO changes the ECE from {errors[0]:.3f} to {errors[1]:.3f}.")


def test_an_unknown_net_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(to.InputError, match=r"TO201.*vgg16"):
        images(methods=["vgg61"], data=tmp_path)
    with pytest.raises(to.InputError, match=r"TO802.*plambda_cifar10_vgg16\.npz"):
        images(methods=["vgg16"], data=tmp_path, quick=True)


@pytest.mark.reference
def test_the_papers_images_and_numbers_in_the_real_predictions():
    data = str(reference.path("data/plambda_cifar10_vgg16.npz").parent)
    y, P = network_predictions.load_cifar10_softmax("vgg16", data)
    # The first image of the paper's figure is an airplane, said with 1.00; the second's number is a cat here.
    assert (network_predictions.CIFAR10_CLASSES[y[5037]], round(float(P[5037, 0]), 2)) == (
        "airplane",
        published_numbers.PUBLISHED_IMAGES[5037],
    )
    assert network_predictions.CIFAR10_CLASSES[y[4526]] == "cat"
    assert (P == 0).sum() == 0
    row = measure_cell(Cell("vgg16", 0, data), Plan())
    none = row["methods"][0]
    # The whole file's accuracy is 0.9359, of 8,000 and 2,000 rows.
    assert 0.8 * row["learning"]["accuracy"] + 0.2 * none["accuracy"] == pytest.approx(0.9359, abs=1e-9)
    by_name = {method["method"]: method for method in row["methods"]}
    # What the paper prints of its own net holds here too: MCLLO is better calibrated than nothing, and Xu's method on
    # the probabilities worse, without a label changed.
    assert by_name["MCLLO"]["ECE"] < none["ECE"] < by_name["evidential (Xu) on p"]["ECE"]
    assert none["p"] < 1e-6 < 0.05 < by_name["MCLLO"]["p"]
    assert by_name["evidential (Xu) on p"]["changed"] == 0
