"""Folds, the choice among candidates, and the proof on untouched rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from tests.calibrators.rows import both, draw_predictions, labels, one_hot, powers
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.choose import (
    CrossFittingRows,
    assign_folds,
    choose_by_log_loss,
    choose_leaving_one_fold_out,
    cross_fit,
    one_standard_error_rule,
    sort_by_complexity,
)
from trueodds.calibrators.cross_validation import (
    MeanEstimate,
    confirm_gain,
    mean_and_standard_error,
    row_losses,
    stratified_folds,
    stratified_holdout,
)
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.calibrators.isotonic import IrmSpec, IsotonicSpec
from trueodds.calibrators.spline import SplineSpec
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.calibrators.uniform_mixture import IdentitySpec, mix_with_uniform, original_logs, uniform_share
from trueodds.calibrators.vector import BiasCorrectedTemperatureSpec
from trueodds.core.errors import InputError

ALL = (HistogramSpec(), IsotonicSpec(), TemperatureSpec(), IdentitySpec())


def rng(seed=0):
    return np.random.default_rng(seed)


def choose_calibrator(P, Y, w, candidates, folds=5):
    rows = assign_folds(P, Y, w, folds, None, rng())
    specs = sort_by_complexity(candidates)
    return choose_by_log_loss([rows], specs, [cross_fit([rows], spec) for spec in specs])


def test_folds_have_equal_sizes_and_shares_of_classes():
    y = rng().integers(0, 3, 103)
    fold = stratified_folds(one_hot(y, 3), 5, None, rng())
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    for c in range(3):
        counts = np.bincount(fold[y == c], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_a_cluster_is_never_split():
    cluster = rng().integers(0, 40, 400)
    Y = one_hot(rng(1).integers(0, 2, 400))
    for part in (stratified_folds(Y, 5, cluster, rng()), stratified_holdout(Y, 0.3, cluster, rng())):
        assert all(len(np.unique(part[cluster == c])) == 1 for c in range(40))
        assert len(np.unique(part)) > 1


def test_copies_of_a_row_share_its_fold_when_row_ids_are_the_cluster():
    copies = rng().integers(0, 50, 200)  # a bootstrap
    fold = stratified_folds(one_hot(copies % 2), 5, copies, rng())
    assert all(len(set(fold[copies == i])) <= 1 for i in range(50))


def test_the_held_out_share_is_stratified():
    y = np.repeat([0, 1], [900, 100])
    out = stratified_holdout(one_hot(y), 0.3, None, rng())
    assert (out[y == 0].sum(), out[y == 1].sum()) == (270, 30)


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_both_parts_of_a_split_hold_rows(share):
    assert stratified_holdout(one_hot([0, 1]), share, None, rng()).sum() == 1


def test_the_mean_and_its_error_by_hand():
    # d = 0, 3 with weights 2, 1: mean 1. Residuals w(d - 1) = -2, 2: sqrt(2/1 · 8)/3 = 4/3.
    mean, se = mean_and_standard_error(np.array([0.0, 3.0]), np.array([2.0, 1.0]))
    assert (mean, se) == (pytest.approx(1.0), pytest.approx(4 / 3))


def test_clusters_of_equal_rows_count_once():
    d = rng().normal(size=30)
    single, many = (
        mean_and_standard_error(d, np.ones(30)),
        mean_and_standard_error(np.repeat(d, 4), np.ones(120), np.repeat(np.arange(30), 4)),
    )
    assert many == pytest.approx(single)


def test_mixing_keeps_every_loss_finite_and_rows_at_one():
    Q = mix_with_uniform(np.array([[0.0, 1.0], [0.5, 0.5]]), uniform_share(9))  # a tenth of the uniform
    assert pytest.approx(np.array([[0.05, 0.95], [0.5, 0.5]])) == Q
    assert row_losses(Q, one_hot([0, 0]))[0] == pytest.approx(-np.log([0.05, 0.5]))


def test_two_classes_have_the_binary_brier_score():
    assert row_losses(both([0.8]), one_hot([0]))[1] == pytest.approx([0.64])


@dataclass(frozen=True)
class Memory(IdentitySpec):
    """A rule that keeps every row it was fitted on."""

    name: ClassVar[str] = "memory"
    fitted_rows: ClassVar[list] = []

    def fit(self, P, Y, w):
        self.fitted_rows.append(set(P[:, 0]))
        return Spy(set(P[:, 0]))


class Spy(CalibrationMap):
    def __init__(self, known):
        self.known = known

    def apply(self, P):
        assert not self.known & set(P[:, 0]), "a row was judged by a fit that had seen it"
        return P

    def describe(self):
        return "spying"


@dataclass(frozen=True)
class Hopeless(IdentitySpec):
    """A rule that swaps the classes."""

    name: ClassVar[str] = "hopeless"
    fits: ClassVar[int] = 0

    def fit(self, P, Y, w):
        Hopeless.fits += 1
        return Swapped(set())


class Swapped(Spy):
    def apply(self, P):
        return P[:, ::-1]


def test_no_row_is_scored_by_a_fit_that_saw_it():
    P, y = draw_predictions(100, 3, 1.0, 0)  # of two classes, the fit on all rows is applied to examine its order
    choose_calibrator(P, one_hot(y, 3), np.ones(100), [Memory()])
    assert len(Memory.fitted_rows) == 6  # five folds, and the fit on all that names the parameters


def test_each_fold_is_left_out_of_the_choice_that_it_scores():
    P, y = draw_predictions(100, 2, 1.0, 0)
    Memory.fitted_rows.clear()
    rows = assign_folds(P, one_hot(y), np.ones(100), 5, None, rng())
    choose_leaving_one_fold_out(rows, [IdentitySpec(), Memory()])
    parts = [set(P[rows.fold_of_row == f, 0]) for f in range(5)]
    left_out = [tuple(f for f in range(5) if not parts[f] & row_set) for row_set in Memory.fitted_rows]
    # First five pairs of folds, each fold in two of them; then those of folds for which it still comes into question.
    assert sorted(left_out[:5]) == [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]
    assert set(left_out[5:]) <= {(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)}


def test_a_candidate_far_behind_is_left_there_after_the_first_fits():
    P, y = draw_predictions(400, 2, 1.0, 0)
    Hopeless.fits = 0
    rows = assign_folds(P, one_hot(y), np.ones(400), 5, None, rng())
    inner = choose_leaving_one_fold_out(rows, [IdentitySpec(), TemperatureSpec(), Hopeless()])
    assert 2 in inner.dropped
    assert Hopeless.fits == 5


def test_a_dropped_candidate_has_no_difference_from_candidates_that_were_fitted_to_more_rows():
    P, y = draw_predictions(400, 2, 2.0, 0)
    rows = assign_folds(P, one_hot(y), np.ones(400), 5, None, rng())
    specs = [IdentitySpec(), TemperatureSpec(), Hopeless()]
    inner = choose_leaving_one_fold_out(rows, specs)
    crossed = [cross_fit([rows], spec) if i < 2 else None for i, spec in enumerate(specs)]
    hopeless = choose_by_log_loss([rows], specs, crossed, [inner]).candidates[2]
    assert hopeless.dropped
    assert (hopeless.difference, hopeless.se, hopeless.brier, hopeless.label_flips) == (None, None, None, None)
    assert hopeless.log_loss == pytest.approx(inner.losses[2].mean())


def test_overconfident_by_two_is_a_matter_of_temperature():
    P, y = draw_predictions(2000, 4, 2.0, 0)
    choice = choose_calibrator(P, one_hot(y, 4), np.ones(2000), ALL)
    assert choice.spec == TemperatureSpec()
    assert [c.method for c in choice.candidates] == ["identity", "temperature", "isotonic", "histogram"]
    assert [c.chosen for c in choice.candidates] == [False, True, False, False]
    assert choice.candidates[0].difference > 3 * choice.candidates[0].se
    assert choice.candidates[1].label_flips == 0
    assert choice.candidates[1].accuracy_change == 0.0


def excess(*means_and_errors):
    return [MeanEstimate(*pair) for pair in means_and_errors]


def test_within_one_standard_error_and_half_the_gain_the_simplest_is_chosen():
    specs = [IdentitySpec(), TemperatureSpec(), IsotonicSpec(), HistogramSpec()]
    # Distances to the best with their errors; the identity's is the gain of the best.
    assert one_standard_error_rule(specs, excess((0.1, 0.02), (0.01, 0.02), (0.0, 0.0), (0.01, 0.02))) == 1
    assert (
        one_standard_error_rule(specs, excess((0.1, 0.02), (0.03, 0.02), (0.0, 0.0), (0.01, 0.02))) == 2
    )  # beyond the error
    assert (
        one_standard_error_rule(specs, excess((0.1, 0.02), (0.06, 0.2), (0.0, 0.0), (0.01, 0.02))) == 2
    )  # most of the gain is lost
    assert (
        one_standard_error_rule(specs, excess((0.1, 0.2), (0.3, 0.2), (0.2, 0.1), (0.0, 0.0))) == 3
    )  # the identity is no fix
    assert (
        one_standard_error_rule(specs, excess((0.0, 0.0), (0.01, 0.2), (0.2, 0.1), (0.3, 0.1))) == 0
    )  # but may be the best


def test_nothing_is_chosen_where_nothing_is_better():
    P, y = draw_predictions(1000, 3, 1.0, 6)
    choice = choose_calibrator(P, one_hot(y, 3), np.ones(1000), ALL)
    assert choice.spec.name == "identity"
    assert choice.candidates[0].difference == 0.0


@dataclass(frozen=True)
class Nudged(IdentitySpec):
    """The identity, sharper by as much as rounding changes a fit."""

    name: ClassVar[str] = "nudged"

    def fit(self, P, Y, w):
        return Sharper(set())


class Sharper(Spy):
    def apply(self, P):
        q = P ** (1 + 1e-11)
        return q / q.sum(axis=1, keepdims=True)


def test_rounding_does_not_decide_between_two_candidates_that_are_the_same_map():
    # Far too timid: each row gains by the nudge, so its mean gain is many of its standard errors, and yet nothing.
    P, y = draw_predictions(1000, 3, 0.3, 5)
    nudged, plain = (row_losses(Q, one_hot(y, 3))[0] for Q in (Sharper(set()).apply(P), P))
    gain, se = mean_and_standard_error(plain - nudged, np.ones(1000))
    assert gain > 5 * se > 0
    choice = choose_calibrator(P, one_hot(y, 3), np.ones(1000), [Nudged()])
    assert choice.spec.name == "identity"
    assert choice.candidates[0].difference == 0.0


def test_a_curve_that_no_temperature_follows_is_found():
    # The stated probability is the square of the true one for class 1: a shift that one power cannot undo.
    r = rng().random(4000)
    y = labels(both(r), rng(1))
    choice = choose_calibrator(both(r**2), one_hot(y), np.ones(4000), ALL)
    assert choice.spec.name == "isotonic"


def test_the_score_of_the_choice_is_the_loss_after_mixing():
    P, y = draw_predictions(50, 2, 1.0, 2)
    choice = choose_calibrator(P, one_hot(y), np.ones(50), [TemperatureSpec()], folds=2)
    fold = stratified_folds(P, 2, None, rng())
    # Two folds of 25: 1/26 of the uniform.
    assert choice.max_uniform_share == pytest.approx(1 / 26)
    T = [TemperatureSpec().fit(P[fold != f], one_hot(y)[fold != f], np.ones(25)) for f in range(2)]
    Q = np.where(fold[:, None] == 0, T[0].apply(P), T[1].apply(P))
    assert choice.candidates[1].log_loss == pytest.approx(row_losses(mix_with_uniform(Q, 1 / 26), one_hot(y))[0].mean())
    # Nothing is mixed into the probabilities as they are, but none of their losses exceeds that of 1/52.
    assert choice.candidates[0].log_loss == pytest.approx(row_losses(np.maximum(P, 1 / 52), one_hot(y))[0].mean())


def test_the_identity_is_always_a_candidate_and_one_row_cannot_choose():
    with pytest.raises(InputError, match="TO507"):
        choose_calibrator(both([0.3]), one_hot([1]), np.ones(1), [TemperatureSpec()])
    two = choose_calibrator(both([0.3, 0.3]), one_hot([0, 1]), np.ones(2), [TemperatureSpec()])
    assert two.candidates[0].method == "identity"


def test_folds_must_be_two_or_more():
    with pytest.raises(InputError, match="TO203"):
        choose_calibrator(both([0.3, 0.4]), one_hot([1, 0]), np.ones(2), [], folds=1)


def proof(P, Q, Y, n_fit=10**12, w=None, **how):
    """The confirmation of Q, of which so little is uniform that nothing shows it."""
    w = np.ones(len(P)) if w is None else w
    share = np.full((len(P), 1), uniform_share(n_fit))
    return confirm_gain(P, np.log(mix_with_uniform(Q, share)), Y, w, share, **how)


def test_the_proof_by_hand():
    # Gains: right ln(.75/.9) = -.1823, wrong ln(.25/.1) = .9163, a quarter wrong: mean .09230, sd .4757·sqrt(200/199).
    # Were .9 right: mean .9·(-.1823) + .1·.9163 = -.07246. The spread seen is more than its sd .3·1.0986 = .3296.
    P, Q, y = both([0.9] * 200), both([0.75] * 200), [1, 1, 1, 0] * 50
    evidence = proof(P, Q, one_hot(y))
    assert evidence.gain == pytest.approx(0.0923, abs=1e-4)
    assert evidence.se == pytest.approx(0.03373, abs=1e-4)
    t = (0.09230 + 0.07246) / (np.sqrt(2) * 0.03373)
    assert evidence.pvalue == pytest.approx(stats.t.sf(t, 199), rel=0.01)
    assert (evidence.low, evidence.high) == pytest.approx(
        tuple(0.0923 + stats.t.ppf([0.05, 0.95], 199) * 0.03373), abs=1e-4
    )
    assert evidence.required_rows == pytest.approx(
        200 * ((stats.t.ppf(0.95, 199) + stats.t.ppf(0.8, 199)) / t) ** 2, rel=0.01
    )
    assert evidence.detectable == pytest.approx((stats.t.ppf(0.95, 199) + stats.t.ppf(0.8, 199)) ** 2 / 400)
    assert evidence.outcome == "confirmed"
    alone = proof(P, Q, one_hot(y), one_parameter=True)
    assert stats.t.isf(alone.pvalue, 199) == pytest.approx(np.sqrt(2) * stats.t.isf(evidence.pvalue, 199))
    assert (alone.gain, alone.low) == (evidence.gain, evidence.low)


def test_gains_are_averaged_over_assignments_to_folds():
    P, y = draw_predictions(60, 3, 2.0, 0)
    share = np.full((60, 1), 0.01)
    logs = [np.log(mix_with_uniform(powers(P, power), share)) for power in (0.5, 0.8)]
    one, other = (confirm_gain(P, Q_logs, one_hot(y, 3), np.ones(60), share) for Q_logs in logs)
    both_assignments = confirm_gain(P, np.stack(logs), one_hot(y, 3), np.ones(60), np.stack([share, share]))
    assert both_assignments.gain == pytest.approx((one.gain + other.gain) / 2, rel=1e-12)
    assert both_assignments.log_loss_after == pytest.approx((one.log_loss_after + other.log_loss_after) / 2, rel=1e-12)
    assert one.pvalue != other.pvalue
    equal = confirm_gain(P, np.stack([logs[0]] * 3), one_hot(y, 3), np.ones(60), np.stack([share] * 3))
    assert equal.pvalue == pytest.approx(one.pvalue, rel=1e-9)


def test_ten_right_answers_confirm_nothing():
    # All gains are equal, so their own spread is 0; a truth of .9 gives ten right of ten in 35 %.
    evidence = proof(both([0.9] * 10), both([0.999] * 10), one_hot([1] * 10))
    assert evidence.gain > 0
    assert evidence.se > 0.1
    assert evidence.low < 0
    assert not evidence.confirmed


def test_without_an_error_the_lower_limit_allows_the_error_rate_that_none_in_n_rows_leaves_possible():
    # 500 right answers at .95: the gain is ln(.999/.95) = .05029; an error would gain ln(.001/.05) = -3.91202. None in
    # 500 is compatible with a rate of 1 - .05^(1/500) = .0059736, so the limit is .05029 - .0059736·3.96231 = .02662;
    # in 250 clusters with .0119114: .00310; in 500·(1 + 3)²/(2·(1 + 9)) = 400 rows in effect with .0074614: .02073.
    P, Q, Y = both([0.95] * 500), both([0.999] * 500), one_hot([1] * 500)
    assert proof(P, Q, Y).low == pytest.approx(0.02662, abs=1e-5)
    assert proof(P, Q, Y, cluster=np.arange(500) // 2).low == pytest.approx(0.00310, abs=1e-5)
    assert proof(P, Q, Y, w=np.repeat([1.0, 3.0], 250)).low == pytest.approx(0.02073, abs=1e-5)
    with_error = proof(P, Q, one_hot([0] + [1] * 499))
    assert with_error.low == pytest.approx(with_error.gain - stats.t.ppf(0.95, 499) * with_error.se)


def test_an_unchanged_map_gains_nothing():
    P, y = draw_predictions(60, 3, 1.0, 0)
    share = np.full((60, 1), 0.01)
    evidence = confirm_gain(P, original_logs(P, share), one_hot(y, 3), np.ones(60), share)
    assert evidence.gain == pytest.approx(0.0, abs=1e-15)
    assert (evidence.pvalue, evidence.outcome) == (1.0, "no gain")


def test_one_cluster_proves_nothing():
    evidence = proof(both([0.9] * 8), both([0.7] * 8), one_hot([0, 1] * 4), cluster=np.zeros(8, dtype=int))
    assert evidence.outcome == "no gain"
    assert evidence.pvalue == 1.0


def test_clusters_widen_the_error():
    P, y = draw_predictions(50, 2, 2.0, 0)
    many, Y = np.repeat(P, 4, axis=0), one_hot(np.repeat(y, 4))
    alone, clustered = (proof(many, powers(many, 0.5), Y, cluster=c) for c in (None, np.repeat(np.arange(50), 4)))
    # Four copies of one row are one row: half the precision.
    assert clustered.se == pytest.approx(2 * alone.se, rel=0.02)
    assert clustered.pvalue > alone.pvalue


@pytest.mark.parametrize(("m", "beta"), [(18, 2.0), (60, 1.25), (60, 0.5)])
def test_what_is_right_is_confirmed_to_be_wrong_in_at_most_five_percent(m, beta):
    runs = 300
    draws = [np.random.default_rng([r, m]) for r in range(runs)]
    sets = [powers(np.exp(2 * draw.normal(size=(m, 3))), 1.0) for draw in draws]
    hits = sum(
        proof(P, powers(P, beta), one_hot(labels(P, draw), 3)).pvalue <= 0.05
        for P, draw in zip(sets, draws, strict=True)
    )
    assert hits <= stats.binom.ppf(0.999, runs, 0.05)


def test_a_sum_over_pairs_of_folds_varies_twice_as_much_as_its_parts_say():
    # Maps of d parameters, scores S of standard normal law: Σ_k S_k·(S − S_k) over the sum of its variances by fold.
    draw, d, folds = rng(5), 20, 5
    S = draw.normal(size=(4000, folds, d)) / np.sqrt(folds)
    rest = S.sum(axis=1, keepdims=True) - S
    t = (S * rest).sum(axis=(1, 2)) / np.sqrt((rest**2).sum(axis=(1, 2)) / folds)
    assert t.var() == pytest.approx(2.0, rel=0.1)


def test_of_one_parameter_the_tail_is_that_of_its_parts():
    # The same of one parameter, named beforehand: 3.9 % of 5, so that the sum is not doubled.
    S = rng(6).normal(size=(40_000, 5)) / np.sqrt(5)
    rest = S.sum(axis=1, keepdims=True) - S
    t = (S * rest).sum(axis=1) / np.sqrt((rest**2).sum(axis=1) / 5)
    assert 0.03 < (t > stats.norm.ppf(0.95)).mean() < 0.05


@pytest.mark.slow
def test_folds_of_equal_label_shares_would_confirm_luck():
    # Ten flat classes, every probability right. By folds with equal shares of each label one bias per class looks
    # confirmed in most sets; by folds that know nothing of the labels it is Binomial(60, at most .05).
    spec, hits = BiasCorrectedTemperatureSpec(), {True: 0, False: 0}
    for r in range(60):
        draw = np.random.default_rng([r, 10])
        P = draw.dirichlet(np.ones(10), 300)
        Y = one_hot(labels(P, draw), 10)
        for by_label in hits:
            rows = CrossFittingRows(P, Y, np.ones(300), stratified_folds(Y if by_label else P, 5, None, draw))
            hits[by_label] += (
                confirm_gain(P, rows.cross_fitted_logs(spec), Y, rows.w, rows.uniform_shares()).pvalue <= 0.05
            )
    assert hits[False] <= stats.binom.ppf(0.999, 60, 0.05)
    assert hits[True] > 30


def test_a_rule_needs_a_fit():
    with pytest.raises(TypeError):
        CalibratorSpec()


def test_the_table_states_whether_a_candidate_keeps_the_order_of_scores():
    # Beyond |logit p| = 2 the event rate hardly changes, so that the best spline decreases there.
    x = 2 * rng(0).normal(size=1500)
    y = (rng([0, 1]).random(1500) < 1 / (1 + np.exp(-1.5 * np.tanh(x)))).astype(int)
    p = 1 / (1 + np.exp(-x))
    choice = choose_calibrator(np.stack([1 - p, p], axis=1), one_hot(y), np.ones(1500), [SplineSpec(), IrmSpec()])
    assert [candidate.keeps_order for candidate in choice.candidates] == [True, False, True]
    P, Y = mix_of_three_classes()
    assert [one.keeps_order for one in choose_calibrator(P, Y, np.ones(len(P)), [TemperatureSpec()]).candidates] == [
        None,
        None,
    ]


def mix_of_three_classes():
    P = rng(3).dirichlet(np.ones(3), 300)
    return P, one_hot((P.cumsum(axis=1) < rng(4).random((300, 1))).sum(axis=1), 3)
