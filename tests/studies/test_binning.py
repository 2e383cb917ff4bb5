"""Does the study of binning find how far settings go, who stays where it is, and the score at which TACE jumps?"""

import csv
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds_studies.binning import sensitivity
from trueodds_studies.binning.sensitivity import (
    ADAPTIVE_SETTINGS,
    BINNING_SCHEMES,
    ESTIMATOR_SETTINGS,
    describe_settings,
)
from trueodds_studies.binning.study import Plan, binning, find_reversals

N = 600
NETS = ("vgg16", "resnet50")
SMALL = Plan(redraws=20, points=12)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two nets of three classes: labels drawn from what the first says, the second twice as sure."""
    where, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    P = rng.dirichlet([0.5] * 3, N)
    y = (P.cumsum(axis=1) < rng.random(N)[:, None]).sum(axis=1)
    np.savez(where / "plambda_cifar10_vgg16.npz", probs=P, labels=y)
    np.savez(where / "aigen_cifar10_resnet50.npz", logits_test=2 * np.log(P), labels_test=y)
    return where


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def study(data, out):
    return binning(methods=NETS, data=data, plan=SMALL, out=out)


@pytest.mark.slow
def test_least_and_most_hold_the_usual_setting_between_them(study, data):
    assert [row["network"] for row in study.rows] == [net for net in NETS for _ in range(3)]
    for row in study.rows:
        assert row["minimum"] <= row["15 bins"] <= row["maximum"]
    usual = to.measure(sensitivity.load_predictions(NETS[0], str(data)), "ece", lens="confidence", interval=None)
    assert study.rows[0]["15 bins"] == float(usual)


@pytest.mark.slow
def test_more_bins_raise_the_floor_of_a_calibrated_net(out, study):
    lines = (out / "binning.curves.csv").read_text(encoding="utf-8").splitlines()
    rows = [r for r in csv.DictReader(lines) if r["network"] == NETS[0]]
    floors = [float(r["noise floor"]) for r in rows if r["scheme"] == "equal-mass" and int(r["bins"]) <= 300]
    assert floors == sorted(floors)
    assert {r["scheme"] for r in rows} == {*BINNING_SCHEMES, *ADAPTIVE_SETTINGS}
    # Each norm is at least the one before: mean, root mean square, largest.
    for r in rows:
        assert float(r["ECE"]) <= float(r["root mean square"]) + 1e-12 <= float(r["worst bin"]) + 2e-12


@pytest.mark.slow
def test_what_has_no_setting_does_not_move(study):
    rows = {row["estimator"]: row for table in study.also if table.name == "binning.steady" for row in table.rows}
    assert tuple(rows) == tuple(ESTIMATOR_SETTINGS)
    assert rows["ks"]["maximum ratio"] == rows["ecce_r"]["maximum ratio"] == 1
    assert rows["ks"]["pairs that change order"] == 0
    assert rows["mce"]["maximum ratio"] > rows["ece"]["maximum ratio"] > 1


def test_flips_are_pairs_that_each_lead_somewhere():
    # c is above both at both settings; a and b change places.
    values = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 2.0, "y": 1.5}, "c": {"x": 3.0, "y": 3.0}}
    (only,) = find_reversals(values)
    assert only == {
        "pair": "a, b",
        "first larger": 1,
        "second larger": 1,
        "setting of first": "y",
        "setting of second": "x",
    }


def test_the_jump_of_tace_is_at_a_score_worked_by_hand(monkeypatch):
    # A range for each row. Class 0 has (.4, 1) and (.2, 0), class 1 (.6, 0) and (.8, 1): (.6 + .2)/2 = .4 each.
    # Passing .2 leaves class 0 with .6, so the mean is .5; passing .4 leaves it with nothing, .2: the largest step.
    # Passing .6 takes .1, and .8 the last .1.
    preds = to.Predictions([0, 1], [[0.4, 0.6], [0.2, 0.8]])
    monkeypatch.setattr(sensitivity, "THRESHOLD_RANGE", (0.01, 0.9))
    grid = sensitivity.tace_by_threshold(preds, 30)
    jump = sensitivity.largest_jump(preds, grid)
    assert jump["scores passed"] == 1
    assert 0.4 <= jump["threshold"] < 0.45
    assert (jump["before"], jump["after"]) == pytest.approx((0.5, 0.2))
    assert (jump["class"], jump["scores above before"], jump["scores above after"]) == ("class:0", 1, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("only_tables")
def test_the_study_keeps_its_tables_and_goes_on_where_it_was(study, data, out, monkeypatch):
    for name in ("binning", "binning.tace"):
        assert ET.parse(out / f"{name}.svg").getroot().tag.endswith("svg")
    assert {"binning.order.md", "binning.steady.csv", "binning.thresholds.csv"} <= {f.name for f in out.iterdir()}
    monkeypatch.setattr("trueodds_studies.binning.study.measure_cell", None)
    assert binning(methods=NETS, data=data, plan=SMALL, out=out).rows == study.rows


def test_an_unknown_net_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(to.InputError, match=r"TO201.*vgg16"):
        binning(methods=["vgg61"], data=tmp_path)
    with pytest.raises(to.InputError, match=r"TO802.*cifar100"):
        binning(methods=["cifar100 resnet110"], data=tmp_path)


@pytest.mark.reference
def test_bins_in_use_change_no_order_by_ece_and_most_orders_by_the_worst_bin():
    data = str(reference.path("data/cifar10h.npz").parent)
    values = {"ece": {}, "mce": {}}
    for net in sensitivity.NETWORKS:
        preds = sensitivity.load_predictions(net, data)
        for name, by_net in values.items():
            by_net[net] = {
                describe_settings(settings): float(
                    to.measure(preds, name, lens="confidence", interval=None, **settings)
                )
                for settings in ESTIMATOR_SETTINGS[name]
            }
    assert find_reversals(values["ece"]) == []
    assert len(find_reversals(values["mce"])) == 18


@pytest.mark.reference
def test_the_nets_give_the_errors_of_the_table_of_provenance():
    data = str(reference.path("data/cifar10h.npz").parent)
    # ECE of 15 bins as the README of the data prints it, to its four digits.
    for net, printed in (("cifar100 resnet110", 0.0788), ("resnet50", 0.0182), ("vgg16", 0.0398), ("resnet18", 0.0535)):
        error = float(to.measure(sensitivity.load_predictions(net, data), "ece", lens="confidence", interval=None))
        assert error == pytest.approx(printed, abs=6e-5)
