"""Does the ecology study keep plots whole, and are its errors those of whole plots?"""

import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.optimize import minimize

import trueodds as to
from tests import reference
from trueodds.cli.study import installed_studies
from trueodds_studies.common.recalibration_methods import MIN_PROB
from trueodds_studies.ecology import (
    ALL_METHODS,
    MODELS,
    Cell,
    Plan,
    SurveyPlots,
    count_zeros,
    ecology,
    measure_cell,
    model_row,
    species_table,
)

pytestmark = pytest.mark.slow


def folder():
    return reference.path("data/ecology_tree_species.parquet").parent


@pytest.fixture(scope="module")
def plots():
    return SurveyPlots.load(folder())


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    where = tmp_path_factory.mktemp("ecology")
    return ecology(quick=True, data=folder(), out=where), where


def test_every_plot_has_every_species_once(plots):
    pairs = set(zip(plots.species.tolist(), plots.plot.tolist(), strict=True))
    assert len(pairs) == len(plots.y) == 13 * 386
    assert plots.rows("GAM").cluster.max() == 385


def test_plots_stand_in_the_same_order_for_every_species(plots):
    # Shuffled within species 999 times none is as correlated over plots as the file's order, for any model: p = .001.
    rng = np.random.default_rng(0)
    for model in MODELS:
        assert max(plots.shuffled_correlation(model, rng) for _ in range(999)) < plots.residual_correlation(model)


def test_chance_alone_correlates_by_one_over_the_plots_less_one(plots):
    # A correlation of n shuffled values has mean square 1/(n − 1).
    # The 78 pairs of 13 species are uncorrelated with each other, each square with a standard deviation of about √2/n:
    # the mean of 100 shuffles is within 4 √(2/7800)/n.
    drawn = [plots.shuffled_correlation("SGB", np.random.default_rng(i)) for i in range(100)]
    assert np.mean(drawn) == pytest.approx(1 / 385, abs=4 * np.sqrt(2 / 7800) / 386)


def test_halves_hold_whole_plots(plots):
    first, other = plots.split_plots(np.random.default_rng(0))
    assert first.sum() == other.sum() == 193 * 13
    assert not set(plots.plot[first]) & set(plots.plot[other])
    assert (first != other).all()


def test_standard_errors_are_those_of_an_optimizer_and_a_jackknife_over_plots(plots):
    row = model_row(plots, "SGB", Plan(resamples=19, shuffles=1))
    p, y, plot = plots.predicted["SGB"], plots.y, plots.plot
    x = np.log(p) - np.log1p(-p)

    def loss(theta):
        eta = theta[0] + theta[1] * x
        return (np.logaddexp(0, eta) - y * eta).sum()

    tau, gamma = minimize(loss, [0, 1], method="BFGS", options={"gtol": 1e-7}).x
    q = 1 / (1 + np.exp(-tau - gamma * x))
    X = np.stack([np.ones_like(x), x], axis=1)
    hessians = X[:, :, None] * X[:, None, :] * (q * (1 - q))[:, None, None]
    hessian, bread = hessians.sum(axis=0), np.linalg.inv(hessians.sum(axis=0))
    scores = X * (y - q)[:, None]
    # How far the parameters move, by one step, where one plot is left out.
    moves = np.array([
        np.linalg.solve(hessian - hessians[plot == g].sum(axis=0), scores[plot == g].sum(axis=0)) for g in range(386)
    ])  # fmt: skip
    clustered = moves.T @ moves * 385 / 386
    assert (row["gamma"], row["delta"]) == (pytest.approx(gamma, abs=1e-5), pytest.approx(np.exp(tau), abs=1e-5))
    assert row["gamma se"] == pytest.approx(np.sqrt(bread[1, 1]), rel=1e-4)
    assert row["gamma se plots"] == pytest.approx(np.sqrt(clustered[1, 1]), rel=1e-4)
    assert row["delta se plots"] == pytest.approx(np.exp(tau) * np.sqrt(clustered[0, 0]), rel=1e-4)


def test_every_model_is_shuffled_in_a_stream_of_its_own(plots, monkeypatch):
    firsts = []
    draw = SurveyPlots.shuffled_correlation
    monkeypatch.setattr(
        SurveyPlots,
        "shuffled_correlation",
        lambda self, model, rng: firsts.append(rng.bit_generator.state) or draw(self, model, rng),
    )
    for model in MODELS:
        model_row(plots, model, Plan(resamples=19, shuffles=1))
    assert len({state["state"]["state"] for state in firsts}) == len(MODELS)


def test_rows_of_one_species_are_tested_by_themselves(plots):
    rows = species_table(plots, "See5")
    assert len(rows) == 13
    (one,) = (row for row in rows if row["species"] == "PSME")
    mask = plots.species == "PSME"
    verdict = to.test(to.Predictions(plots.y[mask], plots.predicted["See5"][mask]), "mcllo", min_prob=MIN_PROB)
    assert one["p"] == verdict.pvalue
    # Holm's smallest is 13 times the smallest p, as far as that is below 1.
    assert min(row["p Holm"] for row in rows) == pytest.approx(13 * min(row["p"] for row in rows))


def test_outcomes_of_probability_zero_are_counted():
    assert count_zeros(to.Predictions([0, 1, 1], [1.0, 1.0, 0.3])) == {"clipped": 2, "outcomes at 0": 1}


def test_a_halving_is_tested_on_plots_that_no_fit_saw(plots):
    halving = measure_cell(Cell("SGB", 0, str(folder())), Plan(resamples=19))
    assert [row["method"] for row in halving["rows"]] == [method.label for method in ALL_METHODS]
    _, other = plots.split_plots(np.random.default_rng([0, 0]))
    bare = float(to.measure(plots.rows("SGB", other), "log_loss", interval=None))
    assert halving["rows"][0]["log loss"] == pytest.approx(bare)


def test_the_quick_study_says_what_stands_in_and_what_is_gained(quick):
    study, where = quick
    assert "not public" in study.sentence
    assert [row["model"] for row in study.rows] == list(MODELS)
    names = [table.name for table in study.also]
    assert names == ["ecology.species", "ecology.halves"]
    halves = {(row["model"], row["method"]): row for row in study.also[1].rows}
    for model in MODELS:
        none, llo = halves[model, "none"], halves[model, "MCLLO"]
        assert llo["difference"] == pytest.approx(llo["loss"] - none["loss"])
    assert halves["GAM", "MCLLO"]["difference"] < 0
    ET.parse(where / "ecology.svg")
    assert {"ecology.md", "ecology.species.csv", "ecology.halves.md"} <= {path.name for path in where.iterdir()}


def test_the_study_is_on_the_list_and_says_which_file_it_lacks(tmp_path):
    assert installed_studies().load("ecology") is ecology
    with pytest.raises(to.InputError, match="TO802"):
        ecology(quick=True, data=tmp_path)
    table = {"SPECIES": ["a"], "OBSERVED": [1], "GAM": [0.5], "SGB": [0.5]}
    parquet.write_table(pa.table(table), tmp_path / "ecology_tree_species.parquet")
    with pytest.raises(to.InputError, match=r"TO803.*no See5 in .*which holds SPECIES, OBSERVED, GAM, SGB"):
        ecology(quick=True, data=tmp_path)
