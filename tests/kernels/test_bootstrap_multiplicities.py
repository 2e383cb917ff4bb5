"""Are n balls thrown into n rows, each row as likely as the others, whatever is asked for at a time?"""

import math

import numba
import numpy as np
import pytest

from trueodds.kernels import bootstrap
from trueodds.kernels.bootstrap import BootstrapMultiplicities, scramble

SLOW = bool(numba.config.DISABLE_JIT)  # plain Python makes a thousandth of the draws in the same time
MANY = 4_000 if SLOW else 400_000


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50])
def test_every_resample_holds_exactly_as_many_rows_as_there_are(n):
    # With one row 1 in 240 Poisson numbers is 2 or more, so that the redrawing is seen at work.
    assert (BootstrapMultiplicities(n, 3).draw(0, 1000).sum(axis=0, dtype=int) == n).all()


def test_two_rows_come_as_two_tosses_of_a_coin_say():
    t = BootstrapMultiplicities(2, 5).draw(0, MANY)[0]
    shares = np.bincount(t, minlength=3) / MANY
    pmf = np.array([0.25, 0.5, 0.25])
    assert (np.abs(shares - pmf) < 4.5 * np.sqrt(pmf * (1 - pmf) / MANY)).all()  # 99.999 % each


def test_three_rows_are_multinomial():
    t = BootstrapMultiplicities(3, 6).draw(0, MANY).astype(int)
    for i in range(4):
        for j in range(4 - i):
            prob = math.factorial(3) / (math.factorial(i) * math.factorial(j) * math.factorial(3 - i - j)) / 27
            share = ((t[0] == i) & (t[1] == j)).mean()
            assert abs(share - prob) < 4.5 * np.sqrt(prob * (1 - prob) / MANY)


@pytest.mark.parametrize("n", [4, 9])
def test_the_moments_are_those_of_multinomial_counts(n):
    t = BootstrapMultiplicities(n, 8).draw(0, MANY).astype(float) - 1
    v = 1 - 1 / n
    fourth = v * (1 + 3 * (n - 2) * v / n)  # of a Binomial(n, 1/n) around its mean
    assert np.abs(t.mean(axis=1)).max() < 4.5 * np.sqrt(v / MANY)
    products = t @ t.T / MANY
    # the variance of a product of two counts is at most the fourth moment (Cauchy–Schwarz)
    covariance = np.where(np.eye(n, dtype=bool), v, -1 / n)
    assert np.abs(products - covariance).max() < 4.5 * np.sqrt(fourth / MANY)


def test_rare_counts_are_as_rare_as_they_should_be():
    # Five and six are told by 16 bits and by the 32 after them; counts of single rows are Binomial(n, 1/n).
    n, resamples = (60, 60) if SLOW else (2000, 1000)
    t = BootstrapMultiplicities(n, 11).draw(0, resamples)
    for k in range(9):
        prob = math.comb(n, k) * (1 / n) ** k * (1 - 1 / n) ** (n - k)
        if t.size * prob >= 25:  # enough for a normal tolerance
            # rows with k balls hinder each other, so their number varies less than if they were independent
            assert abs((t == k).sum() - t.size * prob) < 4.5 * np.sqrt(t.size * prob)


def test_resamples_do_not_depend_on_each_other():
    # Neighbors share a 32-bit number: over n rows the mean product of two resamples has sd 1/√n.
    n, resamples = (200, 20) if SLOW else (20_000, 200)
    t = BootstrapMultiplicities(n, 13).draw(0, resamples).astype(float) - 1
    correlations = (t.T @ t / n)[np.triu_indices(resamples, 1)]
    assert np.abs(correlations).max() < 5.5 / np.sqrt(n)  # 20,000 of them at 1 − 4e-8
    assert abs((correlations**2).mean() * n - 1) < 4.5 * np.sqrt(2 / len(correlations))


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (1, 2), (7, 33), (8, 40), (39, 40)])
def test_a_resample_is_the_same_whatever_others_are_made_with_it(start, stop):
    full = BootstrapMultiplicities(30, 17).draw(0, 40)
    np.testing.assert_array_equal(BootstrapMultiplicities(30, 17).draw(start, stop), full[:, start:stop])


def test_another_key_gives_other_draws():
    assert not np.array_equal(BootstrapMultiplicities(30, 1).draw(0, 8), BootstrapMultiplicities(30, 2).draw(0, 8))


def test_too_many_balls_are_drawn_anew(monkeypatch):
    # A mean of 1 instead of a little less: about half of the resamples hold too many at first.
    thresholds = bootstrap._count_thresholds
    attempts = []
    monkeypatch.setattr(bootstrap, "_count_thresholds", lambda _n: thresholds(10**12))
    drawn = BootstrapMultiplicities(6, 19)
    poisson = drawn._draw_poisson
    drawn._draw_poisson = lambda pairs, attempt: (attempts.append(attempt), poisson(pairs, attempt))[1]
    t = drawn.draw(0, MANY // 40)
    assert max(attempts) > 2
    assert (t.sum(axis=0, dtype=int) == 6).all()
    assert np.abs(t.astype(float).mean(axis=1) - 1).max() < 4.5 * np.sqrt(5 / 6 / t.shape[1])


def test_many_rows_are_counted_beyond_sixteen_bits():
    n = 300 if SLOW else 100_000
    assert (BootstrapMultiplicities(n, 23).draw(0, 3).sum(axis=0, dtype=int) == n).all()


def test_the_bits_are_those_of_whole_numbers():
    def by_hand(a, b, c, d):
        x = a ^ c
        x = (x ^ x >> 16) * 0x7FEB352D % 2**32
        x = (x ^ x >> 15 ^ b ^ d) * 0x846CA68B % 2**32
        return x ^ x >> 16

    rng = np.random.default_rng(0)
    for words in rng.integers(0, 2**32, (50, 4), dtype=np.uint32):
        assert int(scramble(*words)) == by_hand(*words.tolist())
