"""Is the truth of the Gaussian mixture the golden one, and do estimates of it behave as the study says?"""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import linregress, norm

from tests import reference
from trueodds.binning.uniform import Uniform
from trueodds.cli.study import installed_studies
from trueodds.core.errors import InputError
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.gaussian_mixture.convergence_rates import (
    balancing_exponent,
    binning_biases,
    fit_exponents,
    fit_log_log,
    noise_bias,
    octave_averages,
)
from trueodds_studies.gaussian_mixture.simulation import (
    MODELS,
    PARTITION_KINDS,
    Cell,
    LogisticModel,
    Plan,
    binned_limit,
    binned_limit_at_edges,
    draw_batches,
    find_model,
    make_partition,
    measure_cell,
    mixture_quantiles,
    oracle_means,
    population_edges,
    population_view,
    true_error,
)
from trueodds_studies.gaussian_mixture.study import (
    QUICK,
    SHOWN_BINS,
    crossing_point,
    flatten_estimates,
    gaussian_mixture,
)

pytestmark = pytest.mark.slow

WRONG, PERFECT, CONSTANT = MODELS["uncalibrated"], MODELS["perfect"], MODELS["constant"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    where = tmp_path_factory.mktemp("mixture")
    return gaussian_mixture(quick=True, out=where), where


@pytest.fixture(scope="module")
def every(quick):
    """All rows of the quick study, read back from what it kept."""
    return stored_rows(quick[1])


def stored_rows(where):
    cells = [Cell(name, n) for name in MODELS for n in QUICK.sizes]
    return flatten_estimates(run_cells("gaussian_mixture", cells, measure_cell, QUICK, where))


def density(x):
    return (norm.pdf(x - 1) + norm.pdf(x + 1)) / 2


def deviation(x):
    return expit(-2 * x) - expit(1 + x)


def test_the_truth_is_that_of_two_other_programs():
    known_by = reference.estimators()
    assert true_error(WRONG) == pytest.approx(known_by["d.eta_tv.beta(1,1)_g1_is_class_minus1"]["value"], abs=1e-9)
    assert true_error(WRONG) == pytest.approx(
        reference.golden("anchors/golden.json")["analytic_and_literal"]["gaussian_mixture"]["eta_tv_b1_1"], abs=1e-12
    )
    square = known_by["d.eta_sq_euclid.beta(1,1)_g1_is_class_minus1"]["value"]
    assert true_error(WRONG, "sq-euclidean") == pytest.approx(square, abs=1e-9)


def test_the_number_of_the_paper_is_about_the_class_minus_one():
    # Taken as the probability of Y = 1, σ(1 + x) for Y = 1 is σ(−1 − x) for Y = −1: another world, another number.
    mistaken = LogisticModel("mistaken", -1.0, -1.0)
    golden = reference.estimators()["d.eta_tv.beta(1,1)_if_g1_were_class_plus1"]["value"]
    assert true_error(mistaken) == pytest.approx(golden, abs=1e-9)
    assert round(true_error(WRONG), 2) == 0.56
    assert golden < 0.2


@pytest.mark.parametrize("model", [PERFECT, CONSTANT], ids=lambda model: model.name)
def test_a_calibrated_model_has_no_error_in_any_bins(model):
    assert true_error(model) < 1e-12
    assert all(binned_limit(model, kind, k) < 1e-12 for kind in PARTITION_KINDS for k in (1, 2, 7, 100))


def test_the_limit_of_two_bins_is_two_integrals():
    # σ(1 + x) = 1/2 at x = −1: |∫| of the deviation on either side.
    low = quad(lambda x: deviation(x) * density(x), -12, -1)[0]
    high = quad(lambda x: deviation(x) * density(x), -1, 12)[0]
    assert binned_limit(WRONG, "uniform", 2) == pytest.approx(abs(low) + abs(high), abs=1e-8)
    assert binned_limit(WRONG, "tree", 1) == pytest.approx(abs(low + high), abs=1e-8)


def test_bins_hide_twice_the_smaller_side_of_the_crossing_and_nothing_elsewhere():
    for kind in PARTITION_KINDS:
        edges = (1e-9, *population_edges(WRONG, kind, 10), 1 - 1e-9)
        low, high = max(e for e in edges if e < crossing_point()), min(e for e in edges if e > crossing_point())
        sides = [
            abs(quad(lambda x: deviation(x) * density(x), a, b)[0])
            for a, b in ((logit(low) - 1, -1 / 3), (-1 / 3, logit(high) - 1))
        ]
        assert true_error(WRONG) - binned_limit(WRONG, kind, 10) == pytest.approx(2 * min(sides), abs=1e-8)


@pytest.mark.parametrize("kind", PARTITION_KINDS)
def test_every_partition_shows_strictly_less_than_the_truth(kind):
    assert all(binned_limit(WRONG, kind, k) < true_error(WRONG) - 1e-7 for k in SHOWN_BINS)
    assert all(
        binned_limit(WRONG, kind, k, "sq-euclidean") < true_error(WRONG, "sq-euclidean") - 1e-5 for k in SHOWN_BINS
    )


def test_with_an_edge_at_the_crossing_total_variation_loses_nothing_and_the_square_still_does():
    assert binned_limit_at_edges(WRONG, (crossing_point(),)) == pytest.approx(true_error(WRONG), abs=1e-12)
    # Strictly convex: equality only where r − g is constant within a bin.
    assert binned_limit_at_edges(WRONG, (crossing_point(),), "sq-euclidean") < true_error(WRONG, "sq-euclidean") - 0.1


def test_halved_bins_never_show_less():
    for kind in ("uniform", "equal-mass"):
        limits = [binned_limit(WRONG, kind, 2**power) for power in range(8)]
        assert all(finer >= coarser - 1e-12 for coarser, finer in pairwise(limits))


def test_quantiles_are_those_of_the_mixture():
    x = np.array([-2.3, -0.4, 0.0, 1.7])
    assert mixture_quantiles((norm.cdf(x + 1) + norm.cdf(x - 1)) / 2) == pytest.approx(x, abs=1e-9)
    mass = population_view(WRONG, edges := population_edges(WRONG, "equal-mass", 7))
    bin_weights = np.bincount(np.searchsorted(edges, mass.p), mass.w)
    assert bin_weights == pytest.approx(np.full(7, 1 / 7), abs=1e-9)


def test_the_calibration_function_is_that_of_the_latent_score():
    x = np.array([-2.0, -1 / 3, 0.5])
    assert WRONG.calibration_function(expit(1 + x)) == pytest.approx(expit(-2 * x))
    assert np.sign(WRONG.deviation_sign(expit(1 + np.array([-2.0, 0.5])))).tolist() == [-1.0, 1.0]
    assert WRONG.crossing == pytest.approx(-1 / 3)
    assert CONSTANT.calibration_function(np.array([0.5])).tolist() == [0.5]


def test_the_mean_that_knows_the_truth_is_unbiased():
    plan = Plan(sets=400, tree_sets=1)
    means = np.concatenate([oracle_means(WRONG, of) for of in draw_batches(WRONG, 500, plan)])
    assert len(means) == 400
    assert abs(means.mean() - true_error(WRONG)) < 4 * means.std(ddof=1) / np.sqrt(400)


def test_three_models_see_the_same_outcomes():
    plan = Plan(sets=2, tree_sets=2)
    views = [next(draw_batches(model, 50, plan)).view for model in MODELS.values()]
    assert all((view.y == views[0].y).all() for view in views)
    assert logit(views[2].p) - 1 == pytest.approx(logit(views[0].p) / -2)  # one x


def test_side_by_side_is_one_by_one():
    plan = Plan(sets=7, tree_sets=3, sizes=(60,), bins=(5,), powers=(), drawn_sizes=(60,), drawn_bins=(5,))
    by_kind = {row["kind"]: row for row in measure_cell(Cell("uncalibrated", 60), plan)["estimates"]}
    views = list(next(draw_batches(WRONG, 60, plan)).views())
    for kind, sets in (("uniform", 7), ("equal-mass", 7), ("tree", 3)):
        alone = [float(BinnedError(make_partition(kind, 5))(view)) for view in views[:sets]]
        assert by_kind[kind]["sets"] == sets
        assert by_kind[kind]["mean"] == pytest.approx(np.mean(alone))
        if kind != "equal-mass":
            assert by_kind[kind]["values"] == pytest.approx(alone, abs=6e-6)  # kept to five digits


def test_estimates_are_those_of_the_library():
    rows = WRONG.world.rows(np.random.default_rng([0, 60, 0]), 60 * 2)
    (view,) = as_lens("positive").views(rows)
    first = next(draw_batches(WRONG, 60, Plan(sets=2, tree_sets=2)))
    assert BinnedError(Uniform(5)).evaluate_selections(first)[0] == float(
        BinnedError(Uniform(5))(view.take(np.arange(60)))
    )


def test_a_line_has_the_slope_and_the_error_of_another_program():
    rng = np.random.default_rng(0)
    n = np.array([10.0, 20, 50, 100, 300])
    values = n**-0.5 * np.exp(0.1 * rng.normal(size=5))
    other = linregress(np.log(n), np.log(values))
    fit = fit_log_log(values, n)
    assert fit.slopes[0] == pytest.approx(other.slope)
    assert fit.errors[0] == pytest.approx(other.stderr)


def test_a_line_over_rows_and_bins_finds_both_powers():
    n, k = np.array([100.0, 100, 1000, 1000, 5000]), np.array([2.0, 5, 2, 20, 10])
    fit = fit_log_log(0.3 * n**-0.5 * k**0.5, n, k)
    assert fit.slopes == pytest.approx((-0.5, 0.5))
    assert fit_log_log([1.0, 2.0], [1.0, 2.0]) is None  # two points have no error
    assert fit_log_log([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]) is None


def test_octaves_are_means_over_powers_of_two():
    means = octave_averages({2: 1.0, 3: 3.0, 4: 5.0})
    assert list(means.values()) == [2.0, 5.0]
    assert list(means) == pytest.approx([np.sqrt(6), 4.0])


def test_what_bins_hide_falls_with_their_square():
    # At worst the crossing lies in the middle of a bin of width 1/k: each side has f |D| / (8 k²), twice that
    # is hidden,
    # with f the density of the predictions there and D = −2r(1 − r)/(p(1 − p)) − 1 = −3 the slope of r − p.
    p = crossing_point()
    maximum = density(-1 / 3) / (p * (1 - p)) * 3 / 4
    hides = binning_biases(WRONG, "uniform")
    fine = {k: gap * k**2 for k, gap in hides.items() if k >= 30}
    # Over a bin of width 1/30 density and slope change by some per cent.
    assert max(fine.values()) == pytest.approx(maximum, rel=0.1)


def test_chance_adds_to_a_perfect_model_what_normal_noise_has(every):
    # A bin of weight w and mean p(1 − p) of v has a gap of about √(v / (n w)) |Z|: bias √(2 / (π n)) Σ √(w v).
    for k in (5, 20):
        edges = population_edges(PERFECT, "uniform", k)
        mass = population_view(PERFECT, edges)
        place = np.searchsorted(edges, mass.p)
        variance = np.bincount(place, mass.w * mass.p * (1 - mass.p))  # Σ w v: √(w v) by bin is its root
        expected = np.sqrt(2 / (np.pi * 10_000)) * np.sqrt(variance).sum()
        row = one(every, "perfect", 10_000, "uniform", k)
        assert abs(row["mean"] - expected) < 4 * row["bias se"]


def test_chance_adds_to_a_wrong_model_only_near_the_crossing(every):
    # ∫ (E|δ + sZ| − |δ|) dδ = s²: with narrow bins the bias is r(1 − r) k / (3 n), at the crossing r = 0.6608.
    row = one(every, "uncalibrated", 10_000, "uniform", 100)
    expected = crossing_point() * (1 - crossing_point()) / 3 * 100 / 10_000
    assert abs(noise_bias(row, WRONG) - expected) < 4 * row["bias se"]


def test_many_rows_come_to_the_limit_and_not_to_the_truth(every):
    for k in (2, 5, 10):
        row = one(every, "uncalibrated", 10_000, "uniform", k)
        assert abs(noise_bias(row, WRONG)) < 4 * row["bias se"]
        assert row["bias"] < -10 * row["bias se"]


def test_over_and_underestimation_are_both_seen(every):
    shares = {
        (row["n"], row["bins"]): row["above"]
        for row in every
        if (row["model"], row["kind"]) == ("uncalibrated", "uniform")
    }
    assert shares[100, 100] > 0.8
    assert shares[10_000, 2] == 0
    assert shares[10_000, 10] < 0.3
    assert all(row["above"] == 1 for row in every if row["model"] == "perfect" and row["bins"] >= 5)


def test_exponents_are_those_expected(every):
    rates = {(row["model"], row["partition"], row["quantity"]): row for row in fit_exponents(every)}
    for kind in PARTITION_KINDS:
        adds = rates["perfect", kind, "bias by noise"]
        assert adds["exponent of n"] == pytest.approx(-0.5, abs=0.05)
        assert adds["exponent of bins"] == pytest.approx(0.5, abs=0.06)
        hides = rates["uncalibrated", kind, "bias by binning, octaves"]
        assert abs(hides["exponent of bins"] + 2) < 3 * hides["se bins"]
        a, se = balancing_exponent(tuple(rates.values()), kind)
        assert abs(a - 0.2) < 3 * se + 0.01
    # The bins of a constant are one, whatever their number: the rate of the mean of n labels alone.
    assert "exponent of bins" not in rates["constant", "uniform", "bias by noise"]


def test_the_quick_study_says_what_it_found(quick):
    study, where = quick
    assert installed_studies().load("gaussian_mixture") is gaussian_mixture
    assert [table.name for table in study.also] == [f"gaussian_mixture.{part}" for part in ("bound", "rates", "rules")]
    assert len(study.rows) == 3 * 2 + 3 + 3 * 2
    bound = study.also[0].rows
    assert sum(row["difference"] > 1e-9 for row in bound) == len(bound) - 1
    assert "27 have a limit below" in study.also[0].sentence
    drawings = {path.name for path in where.glob("*.svg")}
    assert len(drawings) == 7
    for name in drawings:
        assert ET.parse(where / name).getroot().tag.endswith("svg")


@pytest.mark.usefixtures("only_tables")
def test_a_stopped_study_goes_on_to_the_same_rows(tmp_path):
    plan = Plan(sizes=(60, 100, 300), bins=(5, 15), drawn_sizes=(60,), drawn_bins=(5,), sets=6, tree_sets=3)
    full_run = gaussian_mixture(methods=["perfect", "uncalibrated"], plan=plan)
    gaussian_mixture(methods=["perfect"], plan=plan, out=tmp_path)
    cells_file = tmp_path / "gaussian_mixture.cells.jsonl"
    cells_file.write_text("\n".join(cells_file.read_text(encoding="utf-8").splitlines()[:3]) + "\n", encoding="utf-8")
    keys = []
    resumed = gaussian_mixture(
        methods=["perfect", "uncalibrated"], plan=plan, out=tmp_path, progress=lambda _, key: keys.append(key)
    )
    assert resumed.to_dict() == full_run.to_dict()
    assert "perfect 60" not in keys
    assert len(keys) == 4


def test_another_seed_draws_other_rows():
    plan = Plan(sizes=(100,), bins=(5, 15), powers=(), drawn_bins=(5,), sets=5, tree_sets=2)
    one_seed = measure_cell(Cell("perfect", 100), plan)
    other = measure_cell(Cell("perfect", 100), Plan(**{**plan.__dict__, "seed": 1}))
    assert one_seed["estimates"][0]["mean"] != other["estimates"][0]["mean"]


def test_an_unknown_model_is_refused_with_its_neighbors():
    with pytest.raises(InputError, match="TO201"):
        find_model("uncalibrate")


def one(rows, model, n, kind, bins):
    (match,) = (row for row in rows if (row["model"], row["n"], row["kind"], row["bins"]) == (model, n, kind, bins))
    return match
