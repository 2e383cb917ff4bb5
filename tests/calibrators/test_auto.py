"""The whole procedure: fit and choose, confirm, or change nothing."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.rates import rate_is_at_level
from trueodds.calibrators import CALIBRATORS, fitted_calibrator
from trueodds.calibrators.auto import AutoSpec, _count_assignments
from trueodds.calibrators.cross_validation import row_losses
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IsotonicSpec
from trueodds.calibrators.uniform_mixture import mix_with_uniform
from trueodds.data.predictions import Predictions

KEYS = [
    "candidates",
    "chosen",
    "confirmed",
    "outcome",
    "applied",
    "alpha",
    "gain",
    "gain_of",
    "gain_percent",
    "gain_low_percent",
    "gain_se",
    "gain_low",
    "gain_high",
    "pvalue",
    "required_rows",
    "detectable_gain",
    "log_loss_before",
    "log_loss_after",
    "accuracy_before",
    "accuracy_after",
    "label_flips",
    "rows",
    "mixing",
    "min_prob",
    "map_text",
    "notes",
]


def codes(result):
    return [note.code for note in result.notes]


@pytest.mark.slow
def test_a_model_overconfident_by_two_gets_a_temperature_near_two():
    P, y = draw_predictions(3000, 4, 2.0, 0)
    result = fit(AutoSpec(), Predictions(y, P))
    # se(T) = T² se(beta), with se(beta) about .55/sqrt(n) here: .04; five of them.
    assert 1 / result.calibration_map.beta == pytest.approx(2.0, abs=0.2)
    assert "TN509" in codes(result)
    document = result.report.to_dict()
    assert list(document) == KEYS
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["alpha"] == 0.05
    assert (document["chosen"], document["outcome"], document["rows"]) == (
        "temperature",
        "confirmed",
        {"fit": 3000, "confirm": 3000},
    )
    assert document["log_loss_before"] == pytest.approx(row_losses(P, one_hot(y, 4))[0].mean())
    assert document["gain"] == pytest.approx(document["log_loss_before"] - document["log_loss_after"])
    assert document["gain_percent"] == pytest.approx(100 * document["gain"] / document["log_loss_before"])
    assert 0 < document["gain_low"] < document["gain"] < document["gain_high"]
    assert document["gain_low_percent"] == pytest.approx(100 * document["gain_low"] / document["log_loss_before"])
    assert document["mixing"] == pytest.approx(1 / 2401)
    assert document["min_prob"] == 1e-12
    assert document["map_text"] == result.calibration_map.describe()
    assert "confirmed" in str(result.report)


def test_the_confirmed_recipe_is_fitted_again_on_all_rows_and_mixed():
    P, y = draw_predictions(2000, 3, 2.0, 1)
    result = fit(AutoSpec(candidates=("temperature", "isotonic")), Predictions(y, P))
    refitted = CALIBRATORS.load("temperature")().fit(P, one_hot(y, 3), np.ones(2000))
    assert result.calibration_map.to_dict() == refitted.to_dict() | {"mixing": 1 / 2001}
    assert result.predict_proba(P) == pytest.approx(mix_with_uniform(refitted.apply(P), 1 / 2001))


@pytest.mark.slow
def test_a_calibrated_model_is_left_alone_and_the_smallest_visible_gain_is_reported():
    P, y = draw_predictions(1500, 3, 1.0, 2)
    result = fit(AutoSpec(), Predictions(y, P))
    document = result.report.to_dict()
    assert result.method == "identity"
    assert {"TN510", "TN543"} & set(codes(result))
    assert (document["confirmed"], document["label_flips"]) == (False, 0)
    # (1.645 + .842)² / 3000 by the normal law.
    assert document["detectable_gain"] == pytest.approx(3.09 / 1500, rel=0.01)
    assert document["log_loss_after"] == document["log_loss_before"]
    assert (result.predict_proba(P) == P).all()


def test_without_a_gain_no_gain_is_to_be_had():
    # Far more wrong answers than said, the same for every row: no power of p helps, nor less.
    result = fit(AutoSpec(candidates=("temperature",)), Predictions([0, 1] * 100, [0.5] * 200))
    document = result.report.to_dict()
    assert (document["outcome"], document["chosen"], document["gain"], document["required_rows"]) == (
        "no gain",
        "identity",
        None,
        None,
    )
    assert "TN510" in codes(result)
    assert "no gain found" in str(result.report)
    assert result.describe().endswith("no gain found")


def test_too_few_rows_say_about_how_many_would_do():
    # About as many rows as this promises confirm it, on other rows, four times in five or so.
    P, y = draw_predictions(150, 2, 1.3, 9)
    result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P))
    document = result.report.to_dict()
    assert (document["outcome"], document["applied"]) == ("too few rows", "identity")
    assert "TN543" in codes(result)
    assert 150 < document["required_rows"] < 15_000
    assert str(result.report) == "temperature not confirmed: too few rows (150)"
    more = [draw_predictions(document["required_rows"], 2, 1.3, [90, r]) for r in range(20)]
    n_confirmed = sum(fit(AutoSpec(candidates=("temperature",)), Predictions(y, P)).report.confirmed for P, y in more)
    assert n_confirmed >= stats.binom.ppf(0.001, 20, 0.7)


def test_every_map_that_is_delivered_is_finite_on_every_row(tmp_path):
    # The last tenth of the scores never came: isotonic says exactly 0 there, and 1 at the other end.
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = rng.random(3000) < np.clip(1.5 * p - 0.25, 0, 1)
    result = fit(AutoSpec(candidates=(IsotonicSpec("step"),)), Predictions(y, p))
    assert result.report.confirmed
    assert (result.calibration_map.base_map.apply(both([0.0, 1.0])) == 0).any()
    Q = result.predict_proba([0.0, 0.01, 0.5, 0.99, 1.0])
    assert (Q > 0).all()
    assert Q[0].tolist() == pytest.approx([1 - 0.5 / 3001, 0.5 / 3001])
    assert not {"TN505"} & set(codes(result))
    result.save(tmp_path / "cal.json")
    restored = fitted_calibrator.load(tmp_path / "cal.json")
    assert (restored.predict_proba(p) == result.predict_proba(p)).all()
    assert restored.method == "isotonic"


def test_before_is_of_the_probabilities_as_they_are():
    # An outcome that was called impossible: before is infinite, as the table of scores has it; the gain stays finite.
    P, y = draw_predictions(1000, 2, 2.0, 3)
    preds = Predictions([*y, 1], np.concatenate([P[:, 1], [0.0]]))
    report = fit(AutoSpec(), preds).report
    document = report.to_dict()
    assert np.isinf(report.confirmation.log_loss_before)
    assert document["log_loss_before"] is document["gain_percent"] is document["gain_low_percent"] is None
    assert 0 < document["log_loss_after"] < 1
    assert 0 < document["gain_low"] < document["gain"]


@pytest.mark.slow
def test_a_calibrated_model_is_rarely_changed():
    # A wrong change needs a wrong choice and a wrong proof at 5 %. A rate of 15 % is found with probability .96.
    sets = (draw_predictions(100, 2 + r % 2, 1.0, [7, r]) for r in range(200))
    changes = (fit(AutoSpec(), Predictions(y, P)).report.confirmed for P, y in sets)
    assert rate_is_at_level(changes, 0.05, excluded=0.15)


@pytest.mark.slow
def test_a_strong_error_is_usually_found():
    # At n = 1000 and T = 2 the expected gain on 300 rows is six standard errors: a miss has probability below .01.
    # Misses of 40 % of the sets are found with probability .98.
    sets = (draw_predictions(1000, 4, 2.0, [8, r]) for r in range(30))
    misses = (not fit(AutoSpec(), Predictions(y, P)).report.confirmed for P, y in sets)
    assert rate_is_at_level(misses, 0.05, excluded=0.4)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.3], [1]),
        ([0.3, 0.4], [1, 0]),
        ([0.2] * 19, [0, 1] * 9 + [0]),
        ([0.2] * 50, [0] * 50),
        ([0.2] * 50, [0] * 49 + [1]),
    ],
)
def test_too_little_data_still_gets_an_answer(p, y):
    result = fit(AutoSpec(), Predictions(y, p))
    assert result.method == "identity"
    assert codes(result)[-1] == "TN507"
    document = result.report.to_dict()
    assert list(document) == KEYS
    assert (document["confirmed"], document["candidates"], document["pvalue"]) == (False, [], None)
    assert document["outcome"] is None
    assert str(result.report) == f"no recalibration: {result.notes[-1].text}"
    assert "no recalibration attempted" in repr(result)


def test_few_clusters_are_little_data():
    P, y = draw_predictions(200, 2, 2.0, 0)
    result = fit(AutoSpec(), Predictions(y, P, cluster=np.arange(200) % 10))
    assert "10 clusters" in result.notes[-1].text


def forecasts(n_clusters, seed=0):
    """Overconfident forecasts, six of each case, whose outcomes depend on each other."""
    rng = np.random.default_rng(seed)
    case = rng.normal(size=(n_clusters, 1))
    logit = (case + rng.normal(0, 0.7, (n_clusters, 6))).ravel()
    y = rng.random(logit.size) < expit(logit + np.repeat(rng.normal(0, 0.5, n_clusters), 6))
    return Predictions(y.astype(int), expit(2 * logit), cluster=np.repeat(np.arange(n_clusters), 6))


def test_few_clusters_are_assigned_to_folds_several_times_and_the_note_says_so():
    for n_clusters, assignments in ((40, 5), (200, 1)):
        result = fit(AutoSpec(candidates=("temperature",)), forecasts(n_clusters))
        assert result.report.choice.assignments == assignments
        text = next(note.text for note in result.notes if note.code == "TN508")
        assert ("means over 5 assignments of the clusters to folds" in text) == (assignments == 5)
    # 250,000 probabilities at most, except that there are two assignments at least.
    cluster = np.arange(100_000) % 30
    counts = [_count_assignments(n, 2, cluster[:n]) for n in (25_000, 31_000, 42_000, 100_000)]
    assert counts == [5, 4, 2, 2]


@pytest.mark.slow
def test_results_of_few_clusters_depend_little_on_the_seed(monkeypatch):
    # The variance of means of five assignments is a fifth of that of a single one. The ratio of two variances of ten
    # values each exceeds 3.2 times the true one with a probability of 5 %, and 1 = 5 · 1/5.
    preds, spec = forecasts(30), AutoSpec(candidates=("temperature", "beta"))

    def variance_of_gains():
        return np.var([fit(replace(spec, rng=seed), preds).report.confirmation.gain for seed in range(10)])

    variance = variance_of_gains()
    monkeypatch.setattr(sys.modules[AutoSpec.__module__], "_MAX_ASSIGNMENTS", 1)
    assert variance <= 3.2 / 5 * variance_of_gains()


@pytest.mark.slow
def test_a_rare_or_absent_class_keeps_its_column():
    P, y = draw_predictions(300, 5, 2.0, 3)
    result = fit(AutoSpec(), Predictions(np.minimum(y, 3), P))
    assert result.predict_proba(P).shape == (300, 5)
    assert "TN501" in codes(result)
    y = np.append(np.minimum(y, 3)[:-1], 4)  # once only
    assert fit(AutoSpec(), Predictions(y, P)).predict_proba(P).shape == (300, 5)


@pytest.mark.slow
def test_copied_clusters_do_not_pass_for_evidence():
    P, y = draw_predictions(40, 2, 1.0, 11)
    cluster = np.repeat(np.arange(40), 25)
    preds = Predictions(np.repeat(y, 25), np.repeat(P, 25, axis=0), cluster=cluster)
    assert not fit(AutoSpec(), preds).report.confirmed


@pytest.mark.slow
def test_rows_without_weight_do_not_matter():
    P, y = draw_predictions(400, 3, 2.0, 4)
    w = np.ones(400)
    w[:50] = 0
    some = AutoSpec().fit_with_report(P[50:], one_hot(y[50:], 3), w[50:])[0]
    assert AutoSpec().fit_with_report(P, one_hot(y, 3), w)[0].to_dict() == some.to_dict()


@pytest.mark.slow
def test_votes_and_confidence_are_calibrated_too():
    P, y = draw_predictions(600, 3, 2.0, 5)
    votes = np.array([np.random.default_rng(i).multinomial(7, p) for i, p in enumerate(powers(P, 0.5))])
    assert fit(AutoSpec(), Predictions(votes, P)).calibration_map.beta == pytest.approx(0.5, abs=0.1)
    hit = (P.argmax(axis=1) == y).astype(int)
    result = fit(AutoSpec(), Predictions.from_confidence(P.max(axis=1), hit))
    assert result.classes == ("wrong", "correct")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_and_another_another_split():
    P, y = draw_predictions(300, 3, 1.4, 6)
    one, two, other = (AutoSpec(rng=seed).fit_with_report(P, one_hot(y, 3), np.ones(300))[1] for seed in (1, 1, 2))
    assert one.to_dict() == two.to_dict()
    assert one.to_dict() != other.to_dict()


def test_candidates_are_names_or_rules():
    P, y = draw_predictions(500, 2, 2.0, 7)
    spec = AutoSpec(candidates=("temperature", IsotonicSpec("step")))
    document = spec.fit_with_report(P, one_hot(y), np.ones(500))[1].to_dict()
    assert [c["method"] for c in document["candidates"]] == ["identity", "temperature", "isotonic"]
    assert spec.settings()["candidates"] == ("temperature", "isotonic")


def test_of_many_rows_some_choose_and_all_fit(monkeypatch):
    monkeypatch.setattr(sys.modules[AutoSpec.__module__], "MAX_PROBABILITIES", 3000)
    monkeypatch.setattr(sys.modules[AutoSpec.__module__], "_ROWS_FOR_MANY_CLASSES", 0)
    P, y = draw_predictions(4000, 3, 2.0, 8)
    result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P))
    (note,) = (note for note in result.notes if note.code == "TN539")
    assert "on 1,000 of the 4,000 rows" in note.text
    document = result.report.to_dict()
    assert document["rows"] == {"fit": 4000, "confirm": 1000}
    assert document["log_loss_before"] == pytest.approx(
        row_losses(P, one_hot(y, 3))[0].mean()
    )  # of all, as the table of scores
    assert document["log_loss_before"] - document["log_loss_after"] == pytest.approx(document["gain"])
    refitted = CALIBRATORS.load("temperature")().fit(P, one_hot(y, 3), np.ones(4000))
    assert result.calibration_map.beta == pytest.approx(refitted.beta, rel=1e-9)


def test_with_many_classes_more_probabilities_are_compared_so_that_curves_of_single_classes_have_enough_rows():
    P, y = draw_predictions(3000, 100, 2.0, 8)
    report = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P)).report
    assert report.confirm_rows == 3000  # 300,000 probabilities; 2,000 rows before


@pytest.mark.slow
def test_a_correct_but_underconfident_model_needs_some_rows_to_be_sharpened():
    # Always right, said with .9: no spread among the gains, and yet 20 rows are no proof: .9²⁰ is 12 %, .9⁹⁰ nothing.
    # With 10 expected errors, 100 rows without any may be those of the fit (TN163).
    small, large = (fit(AutoSpec(), Predictions([0, 1] * n, both([0.1, 0.9] * n))).report.confirmed for n in (10, 45))
    assert (small, large) == (False, True)


def test_two_folds_are_too_few_to_fit_to_choose_and_to_confirm():
    P, y = draw_predictions(600, 2, 2.0, 1)
    result = fit(AutoSpec(candidates=("temperature",), folds=2), Predictions(y, P))
    assert result.report.choice.folds == 3
    assert result.report.confirmed


def test_rows_that_are_not_compared_are_not_requested(monkeypatch):
    # Beyond so many rows no more are looked at: to ask for "about 1,400" of 6,000 rows would be to ask in vain.
    monkeypatch.setattr(sys.modules[AutoSpec.__module__], "MAX_PROBABILITIES", 600)
    monkeypatch.setattr(sys.modules[AutoSpec.__module__], "_ROWS_FOR_MANY_CLASSES", 0)
    outcomes = set()
    for seed in range(12):
        P, y = draw_predictions(3000, 2, 1.15, seed)
        result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P))
        outcomes.add(result.report.outcome)
        assert result.report.to_dict()["required_rows"] is None
    assert outcomes <= {"confirmed", "gain not established", "no gain"}
    assert "no gain" in outcomes


@pytest.mark.slow
def test_where_no_gain_is_to_be_had_nothing_is_chosen():
    for seed in range(8):
        P, y = draw_predictions(400, 2, 1.0, seed)
        document = fit(AutoSpec(), Predictions(y, P)).report.to_dict()
        if document["outcome"] == "no gain":
            assert document["chosen"] == "identity"
            assert [candidate["method"] for candidate in document["candidates"] if candidate["chosen"]] == ["identity"]


def test_a_curve_for_each_of_many_classes_is_not_tried_on_few_rows():
    def names(n, k):
        return {spec.name for spec in AutoSpec()._suitable_specs(n, k)}

    assert "isotonic" in names(200, 100)
    assert "isotonic" not in names(199, 100)
    assert {"temperature", "structured"} <= names(199, 100)
    assert "isotonic" in names(3, 2)  # two classes share a curve
