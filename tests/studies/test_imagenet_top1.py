"""Does the study of confidence and correctness alone ask every member, and say what works and what the rest needs?"""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds.calibrators import CALIBRATORS
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses import LENS_NAMES
from trueodds_studies.common import network_predictions
from trueodds_studies.common.network_predictions import IMAGENET_NETWORKS
from trueodds_studies.imagenet_top1 import COMPARED, Plan, imagenet_top1, recalibrate

pytestmark = pytest.mark.slow

N = 400
SMALL = Plan(resamples=50, redraws=19)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The first net is calibrated, the second says more than comes, of the same images."""
    where, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    conf = rng.uniform(0.4, 1, N)
    conf[0] = 1.0  # log odds are infinite there
    arrays = {}
    for net, power in zip(IMAGENET_NETWORKS, (1.0, 2.0, 1.0), strict=True):
        arrays |= {f"conf_{net}": conf, f"correct_{net}": (rng.random(N) < conf**power).astype(np.int8)}
        arrays[f"label_{net}"] = np.arange(N)
    np.savez(where / network_predictions.IMAGENET_FILE, **arrays)
    return where


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def study(data, out):
    return imagenet_top1(methods=IMAGENET_NETWORKS[:2], data=data, plan=SMALL, out=out)


def rows(study, name):
    return next(table.rows for table in study.also if table.name == f"imagenet_top1.{name}")


def test_every_member_of_every_registry_works_or_says_what_it_needs(study):
    works = {(row["kind"], row["name"]): row["supported"] for row in rows(study, "needs")}
    every = {"lens": LENS_NAMES, "estimator": ESTIMATORS.names(), "test": TESTS.names()}
    every |= {"calibrator": CALIBRATORS.names(), "diagram": DIAGRAMS.names()}
    assert list(works) == [(kind, name) for kind, names in every.items() for name in names]
    assert [name for name in LENS_NAMES if works["lens", name] == "yes"] == ["confidence"]
    assert all(works["lens", name].startswith("TO204: ") for name in LENS_NAMES if name != "confidence")
    assert works["diagram", "simplex"].startswith("TO704: ")
    assert works["test", "cox"] == "with min_prob=1e-06 (TO205 without)"
    assert {works["estimator", name] for name in ESTIMATORS.names()} == {"yes"}


def test_the_numbers_are_those_of_the_library(study, data):
    one = network_predictions.load_imagenet_top1(IMAGENET_NETWORKS[0], str(data))
    answer = to.measure(one, "smece", resamples=50)
    row = next(row for row in study.rows if row["estimator"] == "smece")
    assert row[IMAGENET_NETWORKS[0]].startswith(f"{answer.value:.4f} [{answer.interval.low:.4f}, ")
    assert [row["estimator"] for row in study.rows] == list(ESTIMATORS.names())


def test_tests_reject_the_net_that_says_too_much(study):
    by_test = {row["test"]: row for row in rows(study, "tests")}
    # Mean p − p² over (.4, 1) is .7 − .52 = .18, of a mean whose standard error is below .5/√400 = .025: 7 of them.
    for name in ("consistency", "spiegelhalter", "ks", "cox"):
        assert by_test[name][IMAGENET_NETWORKS[1]] <= 0.05
    assert by_test["cox"]["min_prob"] == 1e-6
    assert by_test["ks"]["min_prob"] is None


def test_the_recalibration_is_tested_on_rows_that_it_has_not_seen(data):
    one = network_predictions.load_imagenet_top1(IMAGENET_NETWORKS[1], str(data))
    learn, evaluation = network_predictions.split_in_halves(one, 0)
    assert learn.n == evaluation.n == N // 2
    fixed = recalibrate(one, 50, 0)
    assert fixed["log loss before"] == pytest.approx(
        float(to.measure(evaluation, "log_loss", interval=None)), rel=1e-12
    )
    assert fixed["ECE after"] < fixed["ECE before"]


def test_nets_of_the_same_images_are_compared_row_by_row(study, data, tmp_path):
    assert network_predictions.have_equal_labels(str(data))
    pairs = rows(study, "pairs")
    assert [row["estimator"] for row in pairs] == list(COMPARED)
    assert {row["pair"] for row in pairs} <= {f"{a} − {b}" for a in IMAGENET_NETWORKS for b in IMAGENET_NETWORKS}
    brier = next(row for row in pairs if row["estimator"] == "brier")
    assert brier["low"] < brier["difference"] < brier["high"]
    file = dict(np.load(data / network_predictions.IMAGENET_FILE))
    file[f"label_{IMAGENET_NETWORKS[2]}"] = file[f"label_{IMAGENET_NETWORKS[2]}"][::-1]
    np.savez(tmp_path / network_predictions.IMAGENET_FILE, **file)
    assert not network_predictions.have_equal_labels(str(tmp_path))


@pytest.mark.usefixtures("only_tables")
def test_the_study_keeps_its_tables_and_goes_on_where_it_was(study, data, out, monkeypatch):
    assert ET.parse(out / "imagenet_top1.svg").getroot().tag.endswith("svg")
    for name in ("tests", "fixes", "risk", "pairs", "needs"):
        assert (out / f"imagenet_top1.{name}.md").exists()
    monkeypatch.setattr("trueodds_studies.imagenet_top1.measure_cell", None)
    assert imagenet_top1(methods=IMAGENET_NETWORKS[:2], data=data, plan=SMALL, out=out).rows == study.rows


def test_an_unknown_net_is_refused():
    with pytest.raises(to.InputError, match=r"TO201.*resnet152"):
        imagenet_top1(methods=["resnet512"])


@pytest.mark.reference
def test_the_nets_give_the_errors_of_the_table_of_provenance():
    data = str(reference.path(f"data/{network_predictions.IMAGENET_FILE}").parent)
    # Accuracy and ECE of 15 bins as the README of the data prints them, to four digits.
    printed = {"resnet152": (0.7833, 0.0499), "densenet161": (0.7711, 0.0567), "efficientnet_b7": (0.7393, 0.0282)}
    for net, (accuracy, error) in printed.items():
        preds = network_predictions.load_imagenet_top1(net, data)
        assert preds.y.mean() == pytest.approx(accuracy, abs=6e-5)
        assert float(to.measure(preds, "ece", interval=None)) == pytest.approx(error, abs=6e-5)
    assert not network_predictions.have_equal_labels(data)  # each network has an order of its own


@pytest.mark.reference
def test_two_real_nets_are_certain_to_the_last_digit_and_one_of_them_is_wrong_there():
    data = str(reference.path(f"data/{network_predictions.IMAGENET_FILE}").parent)
    certain = {
        net: (preds := network_predictions.load_imagenet_top1(net, data)).y[preds.p == 1] for net in IMAGENET_NETWORKS
    }
    assert {net: len(y) for net, y in certain.items()} == {"densenet161": 624, "efficientnet_b7": 0, "resnet152": 328}
    assert {net: int((y == 0).sum()) for net, y in certain.items()} == {
        "densenet161": 3, "efficientnet_b7": 0, "resnet152": 0,
    }  # fmt: skip
