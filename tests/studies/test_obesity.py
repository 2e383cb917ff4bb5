"""Does the obesity study grow the reference's forest, judge on unseen people, and add its splits up rightly?"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.optimize import minimize
from sklearn.ensemble import RandomForestClassifier

import trueodds as to
from tests import reference
from trueodds.cli.study import installed_studies
from trueodds.data.predictions import Predictions
from trueodds_studies.common.recalibration_methods import (
    loss_changes,
    mixed_log_loss,
    standard_error,
    summarize_splits,
)
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import format_change
from trueodds_studies.obesity import split_tables
from trueodds_studies.obesity.split_tables import PUBLISHED_TABLE
from trueodds_studies.obesity.study import (
    ADDED_VOTES,
    FEATURE_SETS,
    FEATURES,
    UNPENALIZED,
    Cell,
    ForestPredictions,
    ObesityData,
    Plan,
    _replace_zeros,
    draw_splits,
    evaluate_unpenalized,
    measure_cell,
    obesity,
    predict_votes,
    split_rows,
    zero_shares,
)

SMALL = Plan(splits=1, trees=20, features=("all",), resamples=19)


def folder():
    return reference.path("data/obesity_features.parquet").parent


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    where = tmp_path_factory.mktemp("obesity")
    return obesity(quick=True, data=folder(), out=where), where


# The forest


@pytest.mark.slow
def test_votes_and_recalibrations_are_those_of_the_reference():
    # golden/recalibration/obesity_methods.json: pandas, scikit-learn and scipy, all but Weight, votes floored at 1e-3.
    forest, min_prob = predict_votes(ObesityData.load("no Weight", folder()), 500, 0), 1e-3
    learn, evaluation = (
        Predictions(part.y, _replace_zeros(part.P, min_prob, 500)) for part in (forest.learn, forest.held_out)
    )
    known = {row["m"]: row for row in reference.golden("recalibration/obesity_methods.json") if row["seed"] == 0}
    for name, method, settings in (
        ("identity", "identity", {}),
        ("TS", "temperature", {}),
        ("BCTS", "bias_corrected_temperature", {}),
        ("MCLLO_b1_ridge0.5", "mcllo", {"baseline": 1, "penalty": 0.5}),
        ("MCLLO_b6_ridge0.5", "mcllo", {"baseline": 6, "penalty": 0.5}),
        ("VS_ridge0.5", "vector", {"penalty": 0.5}),
    ):
        after = Predictions(evaluation.y, to.fit(learn, method, **settings).predict_proba(evaluation))
        assert float(to.measure(after, "log_loss", interval=None)) == pytest.approx(known[name]["nll"], abs=2e-6)
        assert np.mean(after.P.argmax(axis=1) == after.y) == pytest.approx(known[name]["acc"])


def test_the_parts_have_the_papers_sizes_and_share_no_row():
    parts = split_rows(2111, 3)
    assert [len(part) for part in parts] == [1583, 396, 132]
    assert sorted(np.concatenate(parts).tolist()) == list(range(2111))


def test_classes_are_in_alphabetical_order():
    people = ObesityData.load("all", folder())
    assert len(people.y) == 2111
    assert people.classes[1] == "Normal_Weight"
    assert list(people.classes) == sorted(people.classes)
    assert people.classes[-1] == "Overweight_Level_II"


def test_words_become_a_column_each_and_the_features_left_out_are_gone():
    sizes = [ObesityData.load(features, folder()).X.shape[1] for features in FEATURE_SETS]
    # Eight numbers and the words of eight columns: 2 + 2 + 2 + 4 + 2 + 2 + 4 + 5.
    assert sizes == [8 + 23, 7 + 23, 6 + 23]


def test_a_forest_grows_in_as_many_threads_as_trueodds_takes_and_is_the_same(monkeypatch):
    people, grown = ObesityData.load("all", folder()), []

    class Watched(RandomForestClassifier):
        def fit(self, X, y):
            grown.append(self.n_jobs)
            return super().fit(X, y)

    monkeypatch.setattr("trueodds_studies.obesity.study.RandomForestClassifier", Watched)
    predictions = []
    for number in ("1", "3"):
        monkeypatch.setenv("TRUEODDS_THREADS", number)
        predictions.append(predict_votes(people, 10, 0).held_out.P)
    assert grown == [1, 3]
    assert (predictions[0] == predictions[1]).all()


def test_zeros_are_counted():
    preds = Predictions([0, 1], [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]])
    assert zero_shares(preds) == {"zeros": 2 / 6, "true zeros": 1.0}


# Sums over splits


def test_a_loss_with_some_of_the_uniform_mixed_in_is_worked_by_hand():
    # n = 3: a quarter of 1/2 and three quarters of what is said: 1/8 and 1/8 + 3/4 · 1/2.
    P = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert mixed_log_loss(P, np.array([0, 0]), 3) == pytest.approx(-(np.log(1 / 8) + np.log(1 / 2)) / 2)


def test_differences_are_of_the_same_rows_and_their_error_knows_that_splits_share_some():
    def row(loss, method="auto", chose="identity"):
        return {"mixed": loss, "log loss": loss, "ECE": 0.1, "p": 0.2, "accuracy": 0.5, "changed": 0.0,
                "method": method, "chosen": chose}  # fmt: skip

    ours, none = [row(0.2), row(0.6, chose="temperature")], [row(0.3, "none"), row(0.5, "none")]
    change = loss_changes(ours, none, shared=0.5)
    # Differences −.1 and .1: mean 0, standard deviation .1414, error .1, times √(1 + 2 · ½).
    assert change["difference"] == pytest.approx(0)
    assert change["difference se"] == pytest.approx(0.1)
    assert change["corrected se"] == pytest.approx(0.1 * np.sqrt(2))
    assert (change["share worse"], change["maximum difference"]) == (0.5, pytest.approx(0.1))
    assert change["chosen"] == "1 identity, 1 temperature"
    assert summarize_splits(none)["loss"] == pytest.approx(0.4)
    assert standard_error(np.array([1.0])) is None


def test_standard_errors_shrink_with_the_root_of_the_splits():
    # The squared error is that of n independent numbers of variance 1: χ² with n − 1 degrees of freedom over n (n − 1).
    # Its mean over 400 repetitions is 1/n, with a standard deviation of √(2 / (n − 1)) / n / 20: stay within 4 of them.
    rng, n = np.random.default_rng(0), 12
    squares = [standard_error(rng.normal(size=n)) ** 2 for _ in range(400)]
    assert np.mean(squares) == pytest.approx(1 / n, abs=4 * np.sqrt(2 / (n - 1)) / n / 20)


# No pull


def test_without_a_pull_the_likelihood_is_that_of_an_optimizer_where_it_has_a_maximum():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), 350)
    labels = (probs.cumsum(axis=1) < rng.random(350)[:, None]).sum(axis=1)
    P, y = probs[:300], labels[:300]
    calibration_map = evaluate_unpenalized(
        ForestPredictions(Predictions(y, P), Predictions(labels[300:], probs[300:])), 1
    ).calibration_map
    x = np.log(P[:, [0, 2]]) - np.log(P[:, [1]])

    def loss(theta):
        eta = np.insert(theta[:2] + theta[2:] * x, 1, 0.0, axis=1)
        return (np.log(np.exp(eta).sum(axis=1)) - eta[np.arange(300), y]).sum()

    optimum = minimize(loss, [0, 0, 1, 1], method="BFGS", options={"gtol": 1e-6})
    assert np.allclose([*calibration_map.tau, *calibration_map.gamma], optimum.x, atol=1e-4)
    assert calibration_map.converged
    assert np.allclose(
        calibration_map.apply(P), to.fit(Predictions(y, P), "mcllo", baseline=1).predict_proba(P), atol=1e-6
    )


def test_what_stands_in_for_no_votes_is_as_specified_and_sums_to_one():
    P = np.array([[0.0, 1.0]])
    assert _replace_zeros(P, 0.25, 10).tolist() == [[0.2, 0.8]]
    # 10 trees, half a vote more for each: .5 and 10.5 of 11.
    assert _replace_zeros(P, ADDED_VOTES, 10)[0] == pytest.approx([0.5 / 11, 10.5 / 11])


# The study


@pytest.mark.slow
def test_the_quick_study_tells_every_method_against_both_baselines(quick):
    study, _ = quick
    by = {(row["baseline"], row["method"]): row for row in study.rows}
    assert {method for baseline, method in by if baseline == "last class"} == {
        "none",
        "MCLLO",
        "MCLLO, ridge",
        UNPENALIZED,
    }
    none, warm = by["Normal Weight", "none"], by["Normal Weight", "temperature on log p"]
    assert none["accuracy"] == warm["accuracy"]
    assert warm["changed"] == 0.0
    assert warm["loss"] < none["loss"]
    # What a baseline does not change is the same against both.
    assert by["last class", "none"]["loss"] == none["loss"]
    assert by["last class", "MCLLO"]["loss"] != by["Normal Weight", "MCLLO"]["loss"]
    (auto,) = (row for row in study.also[0].rows if row["method"] == "auto")
    assert auto["difference"] == pytest.approx(by["Normal Weight", "auto"]["loss"] - none["loss"])
    assert f"{none['loss']:.3f} without recalibration" in study.sentence
    after = by["Normal Weight", "MCLLO"]
    assert study.sentence.endswith(f"ECE {format_change(none['ECE'], after['ECE'])}.")
    assert "(all; 1 split)" in study.sentence


@pytest.mark.slow
def test_printed_numbers_stand_beside_ours(quick):
    study, _ = quick
    (paper,) = (table for table in study.also if table.name == "obesity.paper")
    printed = [row for row in paper.rows if row["features"] == "published"]
    assert [row["ECE"] for row in printed] == [row["ECE"] for row in PUBLISHED_TABLE.values()]
    assert len(paper.rows) > len(printed)


@pytest.mark.slow
def test_what_was_measured_is_kept_and_not_measured_again(tmp_path):
    cells, remeasured = [Cell("all", 0, str(folder()))], []

    def never(cell, plan):
        remeasured.append(cell)
        return {}

    first = run_cells("obesity", cells, measure_cell, SMALL, tmp_path)
    rows = run_cells("obesity", cells, never, SMALL, tmp_path)
    assert not remeasured
    assert json.dumps(split_tables.method_table(rows)) == json.dumps(split_tables.method_table(first))


@pytest.mark.slow
def test_the_folder_holds_tables_rows_of_each_split_and_a_picture(quick):
    _, where = quick
    names = {path.name for path in where.iterdir()}
    assert {"obesity.md", "obesity.rows.csv", "obesity.gains.md", "obesity.floors.md", "obesity.svg"} <= names
    ET.parse(where / "obesity.svg")


@pytest.mark.slow
def test_a_picture_has_a_dot_for_every_split_and_method(quick, tmp_path):
    _, where = quick
    (record,) = (
        json.loads(line)[1] for line in (where / "obesity.cells.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    )
    figure = draw_splits([record, record], tmp_path / "two.svg")
    methods = [row for row in record["rows"] if row["baseline"] == "Normal Weight"]
    dots = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    assert dots == 2 * len(methods)


def test_the_study_is_on_the_list_and_says_which_file_it_lacks(tmp_path):
    assert installed_studies().load("obesity") is obesity
    with pytest.raises(to.InputError, match="TO802"):
        obesity(quick=True, data=tmp_path)
    parquet.write_table(pa.table({name: [1] for name in FEATURES}), tmp_path / "obesity_features.parquet")
    with pytest.raises(to.InputError, match=r"TO803.*no NObeyesdad in .*which holds Gender, Age, "):
        obesity(quick=True, data=tmp_path)
