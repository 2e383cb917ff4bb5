"""Does the study of six predictions draw what the paper's table says, and does it tell who is blind from who sees?"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests import reference
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds_studies.pathologies.multiclass_toys import six_predictions
from trueodds_studies.table1.lens_scores import (
    COPIES,
    LENSES,
    draw_rows,
    exact_lens_error,
    exact_rows,
    probabilities_and_rates,
)
from trueodds_studies.table1.study import Plan, detects_error, significant_rejection_rate, table1

pytestmark = pytest.mark.slow

SMALL = Plan(rows=300, sets=8, resamples=20, redraws=19)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def study(out):
    return table1(methods=["confidence", "canonical"], plan=SMALL, out=out)


def table(study, name):
    return {row[name[:-1]]: row for part in study.also if part.name == f"table1.{name}" for row in part.rows}


def test_labels_come_with_the_laws_of_the_table():
    preds = draw_rows(30_000, 0, 0)
    predicted, event_rates = probabilities_and_rates()
    for p, r in zip(predicted, event_rates, strict=True):
        y = preds.y[(preds.P == p).all(axis=1)]
        assert len(y) == 5000
        # Shares of 5,000 rows: standard deviation at most .5/√5000 = .0071;
        # 4.9 of them hold 18 shares once in 50,000 runs.
        assert np.bincount(y, minlength=3) / 5000 == pytest.approx(r, abs=0.035)
    assert not np.array_equal(draw_rows(60, 0, 0).y, draw_rows(60, 0, 1).y)
    assert np.array_equal(draw_rows(60, 0, 1).y, draw_rows(60, 0, 1).y)


def test_the_whole_is_the_toys_rows_over_and_over():
    one, many = six_predictions(), exact_rows()
    assert many.n == one.n * COPIES
    for p in np.unique(one.P, axis=0):
        ours, its = (np.bincount(x.y[(x.P == p).all(axis=1)], minlength=3) for x in (one, many))
        assert (ours * COPIES == its).all()


def test_only_the_canonical_lens_holds_an_error():
    assert {lens: exact_lens_error(lens)["exact"] for lens in LENSES} == dict.fromkeys(LENSES, 0.0) | {"canonical": 0.1}


@pytest.mark.reference
def test_the_exact_error_is_that_of_the_reference_numbers():
    assert exact_lens_error("canonical")["exact"] == pytest.approx(
        reference.estimators()["a1.population_canonical.tv"]["value"], rel=1e-12
    )


def test_every_member_of_the_registries_answers_or_says_what_it_needs(study):
    assert tuple(table(study, "estimators")) == ESTIMATORS.names()
    assert tuple(table(study, "tests")) == TESTS.names()
    usable = [
        name for name, row in table(study, "estimators").items() if row["detects"] != "whole vectors not supported"
    ]
    assert {"ece", "skce", "dirichlet_kde", "brier"} <= set(usable)
    assert not {"ks", "smece", "sweep"} & set(usable)


def test_pooled_vectors_show_it_and_sums_class_by_class_do_not(study):
    estimators, tests = table(study, "estimators"), table(study, "tests")
    assert (estimators["ece"]["exact"], estimators["ece"]["if calibrated"]) == (0.1, 0.0)
    assert tests["consistency"]["detects"] == "yes"
    # A blind one tells half of 8 · 8 pairs apart, with a standard deviation of √(17/(12 · 64)) = .15.
    assert estimators["ece"]["AUC"] > 0.85
    # Σ (r − p) · h(p) of a class is 0 for every h, as each class is right given its own probability:
    # scores stay what they were.
    for name in ("brier", "log_loss", "spherical", "utility", "cross_fitted"):
        assert estimators[name]["exact"] == pytest.approx(estimators[name]["if calibrated"], abs=1e-9)
    # So is the gain of MCLLO's family, whose derivatives at the identity are such sums.
    assert to.test(exact_rows(), "mcllo", lens="canonical").pvalue > 0.999


def test_a_test_that_keeps_its_level_is_seldom_taken_for_one_that_sees():
    # Nine of 50 data sets, and fourteen of 100: the fewest rejections above four standard deviations.
    for sets, fewest, once_in in ((50, 9, 1300), (100, 14, 2200)):
        assert (fewest - 1) / sets < significant_rejection_rate(sets) < fewest / sets
        assert 1 / binom.sf(fewest - 1, sets, 0.05) == pytest.approx(once_in, rel=0.05)


def test_one_score_for_all_rows_makes_the_normal_law_of_debiased_l2_reject_too_often_and_redraws_do_not():
    # Through top-label all rows of a view say .6: χ² of one degree each, three views.
    # Of 60 data sets a share of .05 has standard deviation .028.
    sets = [draw_rows(600, 1, number) for number in range(60)]
    settings = {"lens": "top-label", "rng": 0}
    normal = np.mean([to.test(preds, "debiased_l2", **settings).pvalue <= 0.05 for preds in sets])
    monte_carlo = np.mean(
        [to.test(preds, "debiased_l2", null="redraw", resamples=99, **settings).pvalue <= 0.05 for preds in sets]
    )
    assert normal > 0.05 + 2 * 0.028
    assert monte_carlo < normal
    assert monte_carlo < 0.05 + 3 * 0.028


def test_a_blind_estimator_tells_half_of_the_pairs_apart():
    row = {"AUC": 0.5 + 4 * (17 / (12 * 64)) ** 0.5}
    assert not detects_error(row | {"AUC": row["AUC"] - 1e-9}, 8)
    assert detects_error(row | {"AUC": row["AUC"] + 1e-9}, 8)


@pytest.mark.usefixtures("only_tables")
def test_the_study_keeps_its_tables_and_goes_on_where_it_was(study, out, monkeypatch):
    assert ET.parse(out / "table1.svg").getroot().tag.endswith("svg")
    assert {"table1.csv", "table1.estimators.md", "table1.tests.md", "table1.all.csv"} <= {
        f.name for f in out.iterdir()
    }
    assert json.loads(json.dumps(study.to_dict()))["study"] == "table1"
    assert study.sentence.startswith("The error is 0 for 1 of 2 lenses; for canonical it is 0.1.")
    monkeypatch.setattr("trueodds_studies.table1.study.measure_cell", None)
    assert table1(methods=["confidence", "canonical"], plan=SMALL, out=out).rows == study.rows


def test_an_unknown_lens_is_refused():
    with pytest.raises(to.InputError, match=r"TO201.*canonical"):
        table1(methods=["canonicl"])
