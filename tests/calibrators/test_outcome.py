"""What the report of `auto` says about the map that it delivers, and about the gain that it tested."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import binom

from tests.calibrators.rows import draw_predictions, labels, one_hot, powers
from tests.rates import rate_is_at_level
from trueodds.calibrators.auto import AutoSpec
from trueodds.calibrators.choose import assign_folds
from trueodds.calibrators.cross_validation import detectable_gain, row_losses
from trueodds.calibrators.fitted_calibrator import load
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IsotonicSpec
from trueodds.calibrators.uniform_mixture import IdentitySpec, uniform_share
from trueodds.data.predictions import Predictions


def text(result, code):
    (note,) = (note.text for note in result.notes if note.code == code)
    return note


def mixed_choice():
    """Overconfident rows of three classes, in whose folds other methods are chosen than on all rows."""
    rng = np.random.default_rng(6)
    P = rng.dirichlet([1, 1, 1], 400)
    return powers(P, 1.6), (P.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)


@pytest.mark.slow
def test_temperature_scaling_changes_no_predicted_class_whatever_the_folds_chose():
    Q, y = mixed_choice()
    result = fit(AutoSpec(), Predictions(y, Q))
    document = result.report.to_dict()
    assert document["applied"] == "temperature"
    assert document["gain_of"] == "procedure"
    assert document["label_flips"] == (result.predict_proba(Q).argmax(1) != Q.argmax(1)).sum() == 0
    assert document["accuracy_after"] == document["accuracy_before"] == (Q.argmax(axis=1) == y).mean()
    # The gain of the procedure is not that of temperature scaling, which the table of candidates contains.
    (temperature,) = (candidate for candidate in document["candidates"] if candidate["method"] == "temperature")
    assert document["log_loss_after"] != pytest.approx(temperature["log_loss"], abs=1e-3)
    assert "The gain is that of the whole selection procedure, because the folds chose different methods." in text(
        result, "TN509"
    )


def test_changed_classes_are_those_of_the_map_and_their_accuracy_is_cross_fitted():
    # Classes 0 and 1 are confused half of the time: a map of each class changes predictions.
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 2000)
    y = labels(P * [0.4, 1.0, 1.6] / (P * [0.4, 1.0, 1.6]).sum(axis=1, keepdims=True), rng)
    result = fit(AutoSpec(candidates=(IsotonicSpec("step"),)), Predictions(y, P))
    document = result.report.to_dict()
    flips = (result.predict_proba(P).argmax(1) != P.argmax(1)).sum()
    assert document["label_flips"] == flips > 100
    (chosen,) = (candidate for candidate in document["candidates"] if candidate["chosen"])
    change = document["accuracy_after"] - document["accuracy_before"]
    assert change == pytest.approx(chosen["accuracy_change"])
    in_sample = (result.predict_proba(P).argmax(1) == y).mean() - (P.argmax(1) == y).mean()
    assert change < in_sample  # the map was fitted to these rows


def test_the_gain_of_one_method_is_its_cross_fitted_gain():
    P, y = draw_predictions(3000, 4, 2.0, 0)
    document = fit(AutoSpec(candidates=("temperature", "histogram")), Predictions(y, P)).report.to_dict()
    (chosen,) = (candidate for candidate in document["candidates"] if candidate["chosen"])
    assert document["gain_of"] == "method"
    assert document["log_loss_after"] == pytest.approx(chosen["log_loss"])
    assert document["log_loss_before"] == pytest.approx(row_losses(P, one_hot(y, 4))[0].mean())


def test_a_confirmed_gain_of_uncertain_size_says_first_what_is_established():
    # A few impossible-looking outcomes dominate the log loss, so that its reduction has a wide interval.
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1, 1, 1], 150)
    Q, y = powers(P, 6.0), labels(P, rng)
    certain = fit(AutoSpec(candidates=("temperature",)), Predictions(y, Q))
    assert certain.report.confirmation.low > 0
    assert text(certain, "TN509").startswith(
        "Confirmed: on rows used neither to fit nor to choose the map, the gain is"
    )
    for seed in range(40):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet([1, 1, 1], 60)
        result = fit(AutoSpec(candidates=("temperature",)), Predictions(labels(P, rng), powers(P, 2.0)))
        if result.report.confirmed and result.report.confirmation.low <= 0:
            break
    assert result.report.confirmation.gain > 0
    assert text(result, "TN509").startswith(
        "Gain not established, although the miscalibration in this direction is confirmed: on rows used neither"
    )


@pytest.mark.slow
def test_without_other_evidence_no_number_of_rows_is_extrapolated_from_noise():
    for seed in range(40):
        P, y = draw_predictions(300, 3, 1.0, [21, seed])
        result = fit(AutoSpec(), Predictions(y, P))
        if result.report.outcome == "too few rows":
            break
    report = result.report.without_required_rows()
    document = report.to_dict()
    assert (document["outcome"], document["required_rows"], document["confirmed"]) == ("no gain", None, False)
    assert document["gain"] == result.report.to_dict()["gain"]
    assert [note["code"] for note in document["notes"]] == ["TN508", "TN510"]
    assert "about" not in document["notes"][1]["text"]
    assert report.without_required_rows() == report


def test_the_note_states_the_share_of_the_uniform_distribution_in_the_returned_map():
    P, y = draw_predictions(2000, 3, 2.0, [5, 1])
    result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P))
    assert result.to_dict()["parameters"]["mixing"] == 1 / 2001  # 1/(n + 1), and more in the folds
    assert text(result, "TN508") == (
        "The map is mixed with 0.05 % of the uniform distribution to keep the log loss finite."
    )


def test_the_note_of_unchanged_probabilities_states_no_share_of_a_returned_map():
    result = fit(AutoSpec(candidates=("temperature",)), Predictions([0, 1] * 100, [0.5] * 200))
    assert result.method == "identity"
    share = uniform_share(160)  # of a fit on four of five folds of 200 rows
    assert text(result, "TN508") == (
        f"Each map is mixed with up to {100 * share:.1f} % of the uniform distribution to keep the log loss finite. The"
        " returned probabilities are unchanged."
    )


def forest_votes(n_impossible):
    """300 rows of which 60 have an exact zero, as the votes of a random forest do; some of these outcomes occur."""
    rng = np.random.default_rng(4)
    p = np.where(np.arange(300) < 60, 0.0, rng.uniform(0.1, 0.9, 300))
    y = (rng.random(300) < p).astype(int)
    y[:n_impossible] = 1
    return y, p


def test_exact_zeros_of_which_none_occurred_are_mixed_and_the_note_counts_them():
    y, p = forest_votes(0)
    result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, p))
    assert result.method == "identity"
    assert result.predict_proba(p)[:, 1] == pytest.approx(300 / 301 * p + 0.5 / 301, abs=1e-15)
    assert "mixed with 0.0033 of the uniform distribution" in result.describe()
    note = text(result, "TN544")
    assert note.startswith("60 of 300 rows have a predicted probability of exactly 0")
    assert note.endswith("which keeps the log loss of new rows finite.")


def test_if_an_impossible_outcome_occurred_the_returned_probabilities_have_a_finite_log_loss():
    y, p = forest_votes(2)
    result = fit(AutoSpec(candidates=("llo",)), Predictions(y, p))
    q = 300 / 301 * p + 0.5 / 301
    loss = -np.where(y == 1, np.log(q), np.log(1 - q)).mean()
    assert result.method == "identity"
    assert result.predict_proba(p)[:, 1] == pytest.approx(q, abs=1e-15)
    assert result.report.to_dict()["log_loss_after"] == pytest.approx(loss, rel=1e-12)
    assert f"which makes the log loss finite: {loss:.4f}" in text(result, "TN544")
    assert result.report.to_dict()["log_loss_before"] is None
    assert f"log loss infinite → {loss:.4f}" in str(result.report)


@pytest.mark.parametrize("n", [300, 15])  # of which the second is too few to choose
def test_logits_whose_probability_underflows_are_no_exact_zeros(n):
    rng = np.random.default_rng(4)
    logits = np.stack([np.zeros(n), rng.normal(size=n)], axis=1)
    y = (rng.random(n) < expit(logits[:, 1])).astype(int)
    y[:2], logits[:2, 1] = 1, [-800.0, -900.0]
    preds = Predictions.from_logits(y, logits)
    assert (preds.P[:2, 1] == 0).all()
    result = fit(AutoSpec(candidates=("llo",)), preds)
    assert result.recalibrate(preds).P.tolist() == preds.P.tolist()
    assert not [note for note in result.notes if note.code == "TN544"]
    report = result.report.to_dict()
    if n == 300:
        loss = np.logaddexp(0, np.where(y == 1, -1, 1) * logits[:, 1]).mean()
        assert report["log_loss_before"] == report["log_loss_after"] == pytest.approx(loss, rel=1e-12)
    zero = Predictions.from_logits(y, np.where(logits == -900, -np.inf, logits))
    assert text(fit(AutoSpec(candidates=("llo",)), zero), "TN544").startswith("The observed class of 1 row has")


def test_the_identity_is_scored_as_it_is_returned():
    y, p = forest_votes(2)
    P, Y = np.stack([1 - p, p], axis=1), np.eye(2)[y]
    rows = assign_folds(P, Y, np.ones(300), 5, None, np.random.default_rng(0))
    share = rows.uniform_shares()
    scored = rows.cross_fitted_logs(IdentitySpec())
    assert scored == pytest.approx(np.log((1 - share) * P + share / 2), rel=1e-12)
    # Without exact zeros it is not mixed, and a tiny probability keeps its loss.
    P = np.where(P == 0, 1e-200, P)
    rows = rows._replace(P=P)
    assert rows.cross_fitted_logs(IdentitySpec()) == pytest.approx(np.log(P), abs=1e-15)


def test_few_rows_are_mixed_only_if_an_impossible_outcome_occurred():
    for n_impossible in (0, 1):
        p = np.array([0.0] * 4 + [0.5] * 6)
        y = np.array([1] * n_impossible + [0] * (4 - n_impossible) + [0, 1] * 3)
        result = fit(AutoSpec(), Predictions(y, p))
        assert any(note.code == "TN544" for note in result.notes) == bool(n_impossible)
        assert result.predict_proba([0.0])[0, 1] == pytest.approx(n_impossible / 22)  # half of 1/11
        assert ("stay unchanged" in text(result, "TN507")) == (n_impossible == 0)


def test_a_mixed_identity_is_saved_and_loaded(tmp_path):
    y, p = forest_votes(2)
    result = fit(AutoSpec(candidates=("temperature",)), Predictions(y, p))
    result.save(tmp_path / "mixed.json")
    assert (load(tmp_path / "mixed.json").predict_proba(p) == result.predict_proba(p)).all()
    assert result.to_dict()["parameters"] == {"mixing": 1 / 301}


def test_the_line_of_a_calibrator_confirms_no_gain_whose_interval_includes_0():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet([1, 1, 1], 60)
        result = fit(AutoSpec(candidates=("temperature",)), Predictions(labels(P, rng), powers(P, 2.0)))
        if result.report.confirmed and result.report.confirmation.low <= 0:
            break
    assert result.describe().endswith("gain not established on held-out rows")
    assert "gain not established" in str(result.report)


def test_the_note_states_the_power_and_its_level():
    result = fit(AutoSpec(candidates=("temperature",), alpha=0.0025), Predictions([0, 1] * 100, [0.5] * 200))
    detectable = result.report.confirmation.detectable
    assert text(result, "TN510").endswith(
        " The smallest gain of a one-parameter map that is detectable with 80 % power on these rows is"
        f" {detectable:.4f} nats per row (at the 0.25 % level)."
    )


@pytest.mark.parametrize(("n", "words"), [(1, "1 row is too few"), (12, "12 rows are too few")])
def test_one_row_is_singular(n, words):
    result = fit(AutoSpec(), Predictions([1] * n, [0.7] * n))
    assert text(result, "TN507") == f"{words} (at least 20 are required). The probabilities stay unchanged."


def clustered_cohort(seed, n=700, n_clusters=50):
    """Predictions of two classes whose log odds are a little too extreme and vary by cluster."""
    rng = np.random.default_rng(seed)
    cluster, x = np.arange(n) % n_clusters, rng.normal(-1, 1.2, n)
    y = rng.random(n) < expit(0.85 * x - 0.1 + 0.3 * rng.normal(size=n_clusters)[cluster])
    return Predictions(y.astype(int), expit(x), cluster=cluster)


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_the_required_rows_follow_from_the_gain_and_its_standard_error(clustered):
    # The gain must be positive with 80 % power (0.84 standard errors), and a gain c times the detectable one needs n/c
    # rows. With clusters the number followed from the p-value alone: 0.0001 nats ± 0.005 needed 3,800 rows, not 10⁶.
    n_checked = 0
    for seed in range(30):
        preds = clustered_cohort(seed)
        preds = preds if clustered else Predictions(preds.y, preds.p)
        confirmation = fit(AutoSpec(candidates=("temperature", "platt")), preds).report.confirmation
        if confirmation.outcome != "too few rows":
            continue
        n_checked += 1
        gain, required = confirmation.gain, confirmation.required_rows
        assert required >= 700 * confirmation.variance_factor * confirmation.detectable / gain * (1 - 1e-9)
        assert required >= 700 * (0.84 * confirmation.se / gain) ** 2
        assert required > 700
    assert n_checked >= 2


def test_the_detectable_gain_of_clusters_uses_their_design_effect():
    # One row per cluster would be 50 rows and a detectable gain of 0.06 nats; 700 independent rows detect 0.0044.
    preds = clustered_cohort(0)
    shuffled = Predictions(preds.y, preds.p, cluster=np.random.default_rng(1).permutation(preds.cluster))
    spec = AutoSpec(candidates=("temperature",))
    detectable = fit(spec, shuffled).report.confirmation.detectable
    # Of 50 clusters the variance has a standard error of √(2/49) = 20 %, and the design effect is at least 1.
    independent = detectable_gain(700, 49, 0.05)
    assert independent <= detectable <= independent * (1 + 3 * np.sqrt(2 / 49))


def test_a_detectable_gain_above_the_log_loss_is_not_stated():
    # Copies of 40 rows whose log loss is 0.01: no gain can reach the 0.08 nats that so few rows detect.
    y = (np.arange(40) % 5 == 0).astype(int)
    p = np.where(y == 1, 0.99, 0.01)
    preds = Predictions(np.repeat(y, 5), np.repeat(p, 5), cluster=np.repeat(np.arange(40), 5))
    result = fit(AutoSpec(candidates=("temperature",)), preds)
    assert result.report.confirmation is not None
    assert result.report.to_dict()["detectable_gain"] is None
    assert not [note for note in result.notes if "detectable with 80 % power" in note.text]


@pytest.mark.slow
def test_a_chosen_map_needs_twice_the_detectable_gain():
    for seed in range(120):
        result = fit(AutoSpec(candidates=("temperature", "platt")), clustered_cohort(seed))
        confirmation = result.report.confirmation
        if confirmation.outcome == "too few rows" and confirmation.variance_factor == 2:
            break
    assert "A map that is chosen among candidates needs 2 times this gain." in text(result, "TN543")


@pytest.mark.slow
def test_few_clusters_do_not_confirm_luck():
    # Without the doubled p-value, 9 % of the recalibrations of calibrated predictions in 20 clusters were confirmed.
    def is_confirmed(seed):
        generator = np.random.default_rng([7, seed])
        cluster = np.repeat(np.arange(20), 10)
        p = expit(generator.normal(0, 1.5, 20))[cluster]
        y = (generator.random(20) < p[::10]).astype(int)[cluster]  # equal outcomes within a cluster
        result = fit(AutoSpec(candidates=("temperature", "llo")), Predictions(y, p, cluster=cluster))
        return result.report.confirmed

    assert rate_is_at_level(map(is_confirmed, range(150)), 0.05, excluded=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "n", "k"), [(0.5, 300, 4), (2.0, 400, 3)])
def test_the_limit_of_a_gain_is_close_to_it_and_holds(temperature, n, k):
    # The gain of the returned map on new rows is below the one-sided 95 % limit in at most 5 % of data sets.
    misses, ratios, reps = 0, [], 60
    for seed in range(reps):
        generator = np.random.default_rng(seed)

        def draw(rows, generator=generator):
            z = generator.normal(0, 1.3, (rows, k))
            truth, P = softmax(z, axis=1), softmax(temperature * z, axis=1)
            y = (truth.cumsum(axis=1) < generator.random((rows, 1))).sum(axis=1).clip(max=k - 1)
            return truth, P, y

        _, P, y = draw(n)
        calibrator = fit(AutoSpec(candidates=("temperature",)), Predictions(y, P))
        truth, P, _ = draw(4000)
        gain = (truth * (np.log(calibrator.predict_proba(P)) - np.log(P))).sum(axis=1).mean()
        report = calibrator.report.to_dict()
        misses += gain < report["gain_low"]
        ratios.append((report["gain_high"] - report["gain_low"]) / report["gain"])
    assert misses <= binom.ppf(0.999, reps, 0.05)
    assert np.median(ratios) < 1.1
