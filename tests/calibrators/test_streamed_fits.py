"""Are calibrators that are fitted in passes over a source those of rows in memory?"""

import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import labels, powers
from tests.io.test_partitioned_source import Restless
from trueodds import InputError, Predictions
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm.fit_data import PassCounter, Streamed
from trueodds.calibrators._glm.logistic_regression import (
    ColumnMoments,
    LogisticRows,
    fit_logistic,
    fit_logistic_from_sums,
)
from trueodds.calibrators._glm.newton import minimize_newton
from trueodds.calibrators.base import SummedSpec, TalliedSpec
from trueodds.calibrators.fitting import fit_from_source, methods_fitted_from_sums
from trueodds.io import read
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES
from trueodds.tallies import reservoir
from trueodds.tallies.softmax_likelihood import Likelihood

# Passes that 120 rows of three classes take at most (one is the census), where these are not 11.
PASS_LIMITS = {"temperature": 5, "shift": 8, "bias_corrected_temperature": 10, "vector": 10, "beta": 20}
TALLIED = {name for name in methods_fitted_from_sums() if issubclass(CALIBRATORS.load(name), TalliedSpec)}
SUMMED = [name for name in methods_fitted_from_sums() if name not in TALLIED]
OTHER_SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("vector", {"penalty": 0}),
    ("structured", {"form": "vector"}),
    ("mcllo", {"penalty": 0.5, "baseline": 0}),
    ("dirichlet", {"penalty": 0.01}),
    ("platt", {"on": "raw", "smooth": False}),
    ("beta", {"parameters": "ab"}),
]
# Every method that sums fit, how, and the passes that it takes.
FITS: list[tuple[str, dict[str, Any], int]] = [
    (name, settings, PASS_LIMITS.get(name, 11))
    for name, settings in [*((name, {}) for name in SUMMED), *OTHER_SETTINGS]
]
N = 120


def three_classes(seed: int = 5, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    return P, labels(powers(P, 0.6), rng)


def rows_for(name: str, seed: int = 5, **extras: Any) -> Predictions:
    """The same rows, as two classes for a method that supports only these."""
    P, y = three_classes(seed)
    is_binary = CALIBRATORS.load(name).two_classes
    return Predictions(y > 1, P[:, 2], **extras) if is_binary else Predictions(y, P, **extras)


def numbers(document: Any) -> np.ndarray:
    """Every number that is saved with a map but how many steps it took."""
    if isinstance(document, dict):
        return np.concatenate([np.empty(0), *(numbers(document[key]) for key in sorted(document) if key != "n_passes")])
    if isinstance(document, list):
        return np.concatenate([np.empty(0), *map(numbers, document)])
    return np.array([float(document)]) if isinstance(document, (int, float)) else np.empty(0)


def the_same(a: Any, b: Any, within: float = 1e-9) -> None:
    np.testing.assert_allclose(
        numbers(b.calibration_map.to_dict()), numbers(a.calibration_map.to_dict()), rtol=within, atol=within
    )
    assert (b.n, b.classes, dict(b.settings)) == (a.n, a.classes, dict(a.settings))


def in_passes(preds: Predictions, name: str, size: int = 50, **settings: Any) -> Any:
    return to.fit(read(preds, batch_rows=size), name, mode="tally", **settings)


# Notes on the passes and on the cells, and one on rows that the model may have been fitted to, which needs the rows.
OWN_NOTES = ("TN560", "TN561", "TN163")


def codes(calibrator: Any) -> list[str]:
    return sorted(note.code for note in calibrator.notes if note.code not in OWN_NOTES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "pass_limit"), FITS)
@pytest.mark.parametrize("size", [1, 7, N])
def test_any_batches_give_the_parameters_of_rows_in_memory(name, settings, pass_limit, size):
    preds = rows_for(name)
    a, b = to.fit(preds, name, **settings), in_passes(preds, name, size, **settings)
    the_same(a, b)
    assert codes(a) == codes(b)


@pytest.mark.parametrize(("name", "settings", "pass_limit"), FITS)
def test_the_passes_are_few_and_the_note_counts_them(name, settings, pass_limit):
    source, steps = read(rows_for(name), batch_rows=50), []

    def reduce(step):
        steps.append(step)
        return source.reduce(step)

    calibrator = fit_from_source(CALIBRATORS.load(name)(**settings), reduce)
    (note,) = [note for note in calibrator.notes if note.code == "TN560"]
    assert f"in {len(steps)} passes over the data" in note.text
    assert len(steps) <= pass_limit


def test_curves_of_all_classes_share_their_passes():
    # 10 classes, each with a curve of its own: no more passes than the slowest of them takes, plus census and moments.
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(10), 300)
    preds = Predictions(labels(P, rng), P)
    calibrator = in_passes(preds, "platt")
    assert f"in {calibrator.calibration_map.n_passes + 2} passes" in calibrator.notes[-1].text
    the_same(to.fit(preds, "platt"), calibrator)


@pytest.mark.parametrize(("name", "settings", "pass_limit"), FITS)
def test_weights_are_scaled_by_the_mean_of_all_batches(name, settings, pass_limit):
    weight = np.random.default_rng(1).uniform(0.2, 3, N)
    weight[::9] = 0  # rows that are no rows
    preds = rows_for(name, weight=weight)
    a, b = to.fit(preds, name, **settings), in_passes(preds, name, 11, **settings)
    the_same(a, b)
    assert b.n == np.count_nonzero(weight)


@pytest.mark.parametrize("name", ["temperature", "mcllo", "vector", "llo", "beta", "histogram"])
def test_frequency_weights_are_rows(name):
    weight = np.random.default_rng(1).integers(1, 4, N)
    preds = rows_for(name, weight=weight)
    source = read(preds, batch_rows=17)
    a = to.fit(preds, name, weight_kind="frequency")
    the_same(a, to.fit(source, name, mode="tally", weight_kind="frequency"))
    assert a.n == weight.sum()


@pytest.mark.parametrize(("name", "settings", "pass_limit"), [fit for fit in FITS if fit[0] not in ("mcllo", "llo")])
def test_votes_are_summed_like_labels(name, settings, pass_limit):
    P, _ = three_classes()
    votes = np.random.default_rng(2).multinomial(5, [0.5, 0.3, 0.2], N)
    preds = Predictions(votes, P)
    the_same(to.fit(preds, name, **settings), in_passes(preds, name, 13, **settings))


@pytest.mark.parametrize("name", ["mcllo", "llo"])
@pytest.mark.parametrize("what", ["votes", "cluster"])
def test_what_hangs_together_leaves_the_parameters_and_takes_their_errors(name, what):
    P, _ = three_classes()
    rng = np.random.default_rng(2)
    if what == "votes":
        preds = Predictions(rng.multinomial(5, [0.4, 0.3, 0.3], N), P)
        preds = Predictions(np.stack([preds.Y[:, 2], 1 - preds.Y[:, 2]], axis=1), P[:, 0]) if name == "llo" else preds
    else:
        preds = rows_for(name, cluster=rng.integers(0, 30, N))
    a, b = to.fit(preds, name), in_passes(preds, name)
    np.testing.assert_allclose(b.calibration_map.tau, a.calibration_map.tau, rtol=1e-9)
    np.testing.assert_allclose(b.calibration_map.gamma, a.calibration_map.gamma, rtol=1e-9)
    assert a.calibration_map.uncertainty.std_error_method == ("votes" if what == "votes" else "clusters")
    assert (b.calibration_map.uncertainty.std_error_method, b.calibration_map.uncertainty.covariance) == ("far", None)
    assert "there are no standard errors" in b.notes[-1].text
    assert "which sums over a source do not allow" in b.summary()


def test_a_saved_fit_from_sums_is_read_back(tmp_path):
    preds = rows_for("mcllo", cluster=np.arange(N) // 4)
    calibrator = in_passes(preds, "mcllo")
    calibrator.save(tmp_path / "far.json")
    assert to.load(tmp_path / "far.json").to_dict() == calibrator.to_dict()


@pytest.mark.parametrize(("name", "settings", "pass_limit"), [fit for fit in FITS if fit[0] != "llo"])
def test_exact_zeros_are_floored_and_counted_alike(name, settings, pass_limit):
    P, y = three_classes()
    P[:20, 0] = 0
    P[::7] = np.eye(3)[2]
    P /= P.sum(axis=1, keepdims=True)
    preds = Predictions(y, P)
    a, b = to.fit(preds, name, **settings), in_passes(preds, name, 23, **settings)
    the_same(a, b)
    texts = [str(note) for note in a.notes if note.code in ("TN502", "TN541")]
    assert [str(note) for note in b.notes if note.code in ("TN502", "TN541")] == texts
    assert texts or settings.get("on") == "raw"


@pytest.mark.parametrize(("name", "settings", "pass_limit"), FITS)
def test_batches_in_which_a_class_is_missing_are_batches(name, settings, pass_limit):
    preds = rows_for(name)
    ordered = preds[np.argsort(preds.y, kind="stable")]
    the_same(to.fit(preds, name, **settings), in_passes(ordered, name, 10, **settings), 1e-8)


@pytest.mark.parametrize("name", ["mcllo", "vector", "matrix", "temperature", "platt"])
def test_a_class_that_never_came_is_treated_and_noted_alike(name):
    P, y = three_classes()
    preds = Predictions(np.where(y == 1, 2, y), P)
    a, b = to.fit(preds, name), in_passes(preds, name, 10)
    the_same(a, b)
    assert codes(a) == codes(b)
    assert "TN501" in codes(b)


def test_separated_outcomes_end_in_the_same_place():
    x = np.linspace(0.05, 0.95, 40)
    preds = Predictions(x > 0.5, x)
    for name in ("llo", "beta", "mcllo"):
        a, b = to.fit(preds, name), in_passes(preds, name, 7)
        assert not a.calibration_map.converged
        the_same(a, b)
        assert codes(a) == codes(b)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("temperature", {}), ("vector", {"logits": True}), ("matrix", {"logits": True}), ("mcllo", {}), ("vector", {})],
)
def test_logits_are_taken_by_the_rules_that_take_them(name, settings):
    rng = np.random.default_rng(4)
    z = rng.normal(size=(N, 3)) * 2
    z[:3, 0] = -np.inf
    _, y = three_classes()
    preds = Predictions.from_logits(y, z)
    a, b = to.fit(preds, name, **settings), in_passes(preds, name, 19, **settings)
    the_same(a, b)
    # That a map keeps zeros is counted in a pass over its results, which a fit in passes does not make.
    assert [code for code in codes(a) if code != "TN505"] == codes(b)


def test_a_baseline_is_named_as_in_memory():
    P, y = three_classes()
    preds = Predictions(np.array(["cat", "dog", "elk"])[y], P, classes=["cat", "dog", "elk"])
    a, b = (fit(preds, "mcllo", baseline="class:dog") for fit in (to.fit, in_passes))
    assert b.calibration_map.baseline == 1
    the_same(a, b)


@pytest.mark.slow
def test_confidence_is_a_pair_of_classes():
    rng = np.random.default_rng(3)
    c = rng.uniform(0.3, 1, N)
    preds = Predictions.from_confidence(c, rng.random(N) < c**2)
    for name in ("temperature", "platt", "histogram"):
        the_same(to.fit(preds, name), in_passes(preds, name, 9))


def test_a_temperature_that_starts_from_a_sample_in_memory_is_the_same():
    P = np.random.default_rng(0).dirichlet(np.ones(10), 60_000)  # 600,000 probabilities: begun on every eighth row
    preds = Predictions(labels(powers(P, 0.5), np.random.default_rng(1)), P)
    a, b = to.fit(preds, "temperature"), to.fit(preds, "temperature", mode="tally")
    assert a.calibration_map.n_passes < b.calibration_map.n_passes
    assert abs(a.calibration_map.beta / b.calibration_map.beta - 1) <= 1e-9


@pytest.mark.parametrize("name", [*dict.fromkeys(name for name, _, _ in FITS), "isotonic"])
def test_steps_travel_to_workers_and_sums_back(name):
    source = read(rows_for(name), batch_rows=40)

    def reduce(step):
        return source.reduce(lambda batch: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(step))(batch))))

    the_same(in_passes(rows_for(name), name), fit_from_source(CALIBRATORS.load(name)(), reduce))


def test_partitions_on_workers_are_fitted_where_they_lie():
    P, y = three_classes()
    pieces = [{"label": y[part], **{f"p_{j}": P[part, j] for j in range(3)}} for part in np.split(np.arange(N), 4)]
    calibrator = to.fit(Restless(pieces), "mcllo")
    the_same(to.fit(Predictions(y, P), "mcllo"), calibrator)
    assert "TN560" in [note.code for note in calibrator.notes]
    assert to.fit(Restless(pieces), "spline", mode="exact").n == N


def test_rows_beyond_memory_are_fitted_in_passes(monkeypatch):
    preds = rows_for("vector")
    monkeypatch.setattr("trueodds.api.fit.max_probabilities_in_memory", lambda: 3 * N - 1)
    assert "TN560" in [note.code for note in to.fit(read(preds), "vector").notes]
    assert "TN560" not in [note.code for note in to.fit(read(preds), "vector", mode="exact").notes]
    monkeypatch.setattr("trueodds.api.fit.max_probabilities_in_memory", lambda: 3 * N)
    assert "TN560" not in [note.code for note in to.fit(read(preds), "vector").notes]


@pytest.mark.parametrize("name", ["vector", "spline", "auto"])
def test_rows_that_are_in_memory_already_are_all_fitted(name, monkeypatch):
    preds = rows_for("vector")
    expected = to.fit(preds, name)
    monkeypatch.setattr("trueodds.api.fit.max_probabilities_in_memory", lambda: 1)
    calibrator = to.fit(preds, name)
    assert (calibrator.n, calibrator.notes, calibrator.to_dict()) == (expected.n, expected.notes, expected.to_dict())


@pytest.mark.slow
def test_what_sums_do_not_fit_is_fitted_to_a_random_sample(monkeypatch):
    source = read(rows_for("spline"))
    all_rows = to.fit(source, "spline", mode="tally")  # the sample has room for all rows, in another order
    assert "TN171" not in [note.code for note in all_rows.notes]
    P = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_allclose(
        all_rows.predict_proba(P), to.fit(source, "spline", mode="exact").predict_proba(P), atol=1e-9
    )
    monkeypatch.setattr(reservoir, "MAX_PROBS", 300)
    for name in ("spline", "auto"):
        calibrator = to.fit(source, name, mode="tally")
        (text,) = [note.text for note in calibrator.notes if note.code == "TN171"]
        assert f"100 of {N:,} rows" in text
        assert calibrator.n == 100


def test_the_table_of_passes_lists_every_method_that_sums_fit():
    text = (Path(__file__).parents[2] / "docs" / "calibrators.md").read_text(encoding="utf-8")
    table = text.split("| method | passes |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(methods_fitted_from_sums())
    assert TALLIED == set(re.findall(r"`(\w+)`", next(row for row in table.splitlines() if row.endswith("| 1 |"))))


def test_rows_in_clusters_are_not_sampled():
    preds = Predictions([0, 1] * 20, [0.3, 0.6] * 20, cluster=np.arange(40) // 2)
    with pytest.raises(InputError, match="TO404"):
        to.fit(read(preds), "spline", mode="tally")


def test_wrong_rows_are_refused_as_in_memory():
    P, y = three_classes()
    labelled = Predictions.from_multilabel(np.eye(3, dtype=int)[y], P)
    for preds, name, settings, code in (
        (labelled, "temperature", {}, "TO502"),
        (labelled, "isotonic", {}, "TO502"),
        (Predictions(y, P), "llo", {}, "TO511"),
        (Predictions(y, P), "vector", {"logits": True}, "TO509"),
    ):
        for fit in (to.fit, in_passes):
            with pytest.raises(InputError, match=code):
                fit(preds, name, **settings)


def test_batches_with_other_classes_do_not_add():
    P, y = three_classes()
    one, two = Predictions(y, P, classes=["a", "b", "c"]), Predictions(y, P, classes=["b", "a", "c"])
    with pytest.raises(InputError, match="TO531"):
        fit_from_source(CALIBRATORS.load("temperature")(), lambda step: step(one) + step(two))


def test_rows_that_do_not_quite_sum_to_1_are_counted_over_all_batches():
    P, y = three_classes()
    P[::10] *= 1 + 3e-6
    preds = Predictions(y, P)
    (a,), (b,) = ([n for n in fit(preds, "temperature").notes if n.code == "TN101"] for fit in (to.fit, in_passes))
    first, second = (re.search(r"\b\d[\d,]*", note.text) for note in (a, b))
    assert first is not None
    assert second is not None
    assert first.group() == second.group()


# From cells


@pytest.mark.parametrize("bins", [10, 15, 16])
def test_a_histogram_of_cells_is_that_of_rows_where_their_edges_agree(bins):
    preds = rows_for("histogram")
    the_same(to.fit(preds, "histogram", bins=bins), to.fit(to.tally(preds), "histogram", bins=bins))


def test_an_isotonic_curve_of_cells_is_that_of_rows_with_a_score_to_a_cell():
    # Scores i/20 lie in cells of their own, so nothing is pooled that was apart.
    rng = np.random.default_rng(7)
    p = rng.integers(1, 20, 400) / 20
    preds = Predictions(rng.random(400) < p**1.5, p)
    a, b = to.fit(preds, "isotonic"), to.fit(to.tally(preds), "isotonic")
    the_same(a, b, 1e-12)
    assert "3,840 equal cells" in b.notes[-1].text


@pytest.mark.parametrize(("name", "settings"), [("isotonic", {}), ("histogram", {"partition": "equal-mass"})])
def test_a_curve_of_cells_is_that_of_rows_whose_scores_are_those_of_their_cells(name, settings):
    rng = np.random.default_rng(8)
    p = rng.beta(0.5, 0.5, 5_000)
    y = rng.random(5_000) < p**1.3
    cell = np.searchsorted(CELL_EDGES, p, "left") - 1
    mean = np.bincount(cell, p, len(CELL_MIDDLES)) / np.maximum(np.bincount(cell, minlength=len(CELL_MIDDLES)), 1)
    snapped = (mean if name == "isotonic" else CELL_MIDDLES)[cell]
    calibrator = to.fit(Predictions(y, p), name, mode="tally", **settings)
    the_same(to.fit(Predictions(y, snapped), name, **settings), calibrator)
    assert "Scores within a cell are treated as equal" in next(
        note.text for note in calibrator.notes if note.code == "TN561"
    )


def test_cells_tell_of_zeros_at_least_those_of_one_class():
    p = np.array([0.1] * 5 + [0.5] * 5 + [0.9] * 5)
    preds = Predictions([0] * 5 + [0, 1, 0, 1, 0] + [1] * 5, p)
    a, b = to.fit(preds, "isotonic"), to.fit(to.tally(preds), "isotonic")
    assert codes(a) == codes(b) == ["TN505"]
    assert "in 10 of the 15 rows" in next(note.text for note in b.notes if note.code == "TN505")


def test_a_tally_fits_nothing_else():
    tally = to.tally(rows_for("temperature"))
    with pytest.raises(InputError, match=r"TO403.*isotonic, histogram.*read in passes"):
        to.fit(tally, "temperature")
    with pytest.raises(InputError, match="TO403"):
        to.fit(tally, "spline")


# The parts


def test_moments_add_without_losing_digits():
    # Scores 1e8 apart from 0 with spread 1: sums of squares of 1e16 would keep none of its variance.
    rng = np.random.default_rng(0)
    x = 1e8 + rng.normal(size=300)
    X, y, w = np.stack([np.ones(300), x], axis=1), rng.integers(0, 2, 300).astype(float), rng.uniform(0.5, 2, 300)
    direct = ColumnMoments.from_rows(LogisticRows(X, y, w))
    parts = [ColumnMoments.from_rows(LogisticRows(X[i : i + 7], y[i : i + 7], w[i : i + 7])) for i in range(0, 300, 7)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    exact = float(w @ (x - 1e8 - w @ (x - 1e8) / w.sum()) ** 2)
    # Floats near 1e8 are 1.5e-8 apart, so is each z, and Σwz² is off by 2 · 1.5e-8 Σw|z|, where the mean |z| is 0.8.
    for moments in (direct, total):
        assert abs(moments.products[1, 1] / exact - 1) < 2.4e-8


def test_a_fit_over_batches_is_the_fit_of_all_lines():
    rng = np.random.default_rng(1)
    X = np.stack([np.ones(90), rng.normal(size=90), rng.normal(size=90)]).T
    y, w, rest = (rng.random(90) < 0.4).astype(float), np.ones(90), np.zeros(3)
    batches = [LogisticRows(X[i : i + 8], y[i : i + 8], w[i : i + 8]) for i in range(0, 90, 8)]
    streamed = Streamed(PassCounter(partial(_added, batches)))
    np.testing.assert_allclose(
        fit_logistic_from_sums(streamed, rest).theta, fit_logistic(X, y, w, rest).theta, rtol=1e-11
    )


def _added(batches, step):
    total = step(batches[0])
    for batch in batches[1:]:
        total = total + step(batch)
    return total


def test_shorter_steps_are_judged_together():
    # √(1 + θ²) from θ = 3: Newton's step is −θ(1 + θ²) = −30, which falls short of its promise until it is cut to 1/8.
    def sums(theta):
        root = np.sqrt(1 + theta[0] ** 2)
        return Likelihood(float(root), theta / root, np.array([[root**-3]]), 1.0, 1)

    looks = []

    def one(theta):
        looks.append(1)
        return sums(theta)

    def several(places):
        looks.append(len(places))
        return [sums(place) for place in places]

    batched, alone = (
        minimize_newton(one, np.array([3.0]), sums_at_points=several),
        minimize_newton(sums, np.array([3.0])),
    )
    assert batched.theta.tolist() == alone.theta.tolist()
    assert abs(batched.theta[0]) < 1e-9
    assert looks[:3] == [1, 1, 4]
    assert len(looks) < batched.n_passes == alone.n_passes


def test_fits_side_by_side_ask_together():
    streamed = Streamed(PassCounter(partial(_added, [[1, 2], [3]])))

    def asks(times, data):
        return sum(data.sum(partial(_times, by=i)) for i in range(times))

    # 6 · (0 + 1) and 6 · (0 + 1 + 2): the longest of them takes three passes.
    assert streamed.fit_jointly([partial(asks, 2), partial(asks, 3)]) == [6, 18]
    assert streamed.reducer.n_passes == 3


def _times(rows, by):
    return by * sum(rows)


def test_no_rule_is_of_both_kinds():
    for name in methods_fitted_from_sums():
        spec_type = CALIBRATORS.load(name)
        assert issubclass(spec_type, SummedSpec) != issubclass(spec_type, TalliedSpec)
