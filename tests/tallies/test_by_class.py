"""Sums of a softmax with parameters by class."""

import numpy as np
import pytest

from trueodds.tallies.softmax_likelihood import softmax_by_class, softmax_linear


def model(n=50, k=3, d=2, *, shared=False, seed=0):
    rng = np.random.default_rng(seed)
    F, offset = rng.normal(size=(n, d) if shared else (n, k, d)), rng.normal(size=(n, k))
    return F, rng.dirichlet(np.ones(k), n), rng.random(n), rng.normal(size=k * (d + 1)) / 2, offset


def written_out(F, k):
    """The same features as a design (n, K, K(d + 1))."""
    n, d = len(F), F.shape[-1] + 1
    X = np.zeros((n, k, k * d))
    for c in range(k):
        X[:, c, c * d : (c + 1) * d - 1] = F if F.ndim == 2 else F[:, c]
        X[:, c, (c + 1) * d - 1] = 1.0
    return X


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_general_model_says_the_same(shared, k):
    F, Y, w, theta, offset = model(k=k, shared=shared)
    one = softmax_by_class(F, Y, w, theta, offset=offset)
    other = softmax_linear(written_out(F, k), Y, w, theta, offset)
    assert (one.n, one.weight) == (other.n, other.weight)
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert one.gradient == pytest.approx(other.gradient, abs=1e-12)
    assert one.hessian == pytest.approx(other.hessian, abs=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_tied_parameters_have_the_derivatives_of_what_ties_them(shared):
    F, Y, w, theta, offset = model(shared=shared)
    T = np.random.default_rng(1).normal(size=(len(theta), 4))
    phi = np.array([0.3, -0.2, 0.1, 0.5])
    one = softmax_by_class(F, Y, w, phi, offset=offset, tying=T)
    other = softmax_linear(written_out(F, 3) @ T, Y, w, phi, offset)
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert one.gradient == pytest.approx(other.gradient, abs=1e-12)
    assert one.hessian == pytest.approx(other.hessian, abs=1e-11)


def test_a_baseline_is_a_class_that_is_tied_to_nothing():
    # η_j = τ_j + γ_j log(p_j/p_c), η_c = 0 for c = 2: four parameters of two classes.
    rng = np.random.default_rng(2)
    P, w = rng.dirichlet(np.ones(3), 60), np.ones(60)
    Y = np.eye(3)[rng.integers(0, 3, 60)]
    ratio = np.log(P / P[:, 2:])[:, :, None]
    likelihood = softmax_by_class(ratio, Y, w, np.array([1.0, 0.0, 1.0, 0.0]), tying=np.eye(6, 4))
    assert likelihood.value == pytest.approx(-np.log(P[Y == 1]).sum())  # (γ, τ) = (1, 0) changes nothing
    assert likelihood.gradient[1] == pytest.approx((P - Y)[:, 0].sum())
    assert np.linalg.eigvalsh(likelihood.hessian).min() > 0


@pytest.mark.parametrize("shared", [False, True])
def test_parts_add_up_to_the_whole(shared):
    F, Y, w, theta, offset = model(shared=shared)
    full = softmax_by_class(F, Y, w, theta, offset=offset)
    parts = [
        softmax_by_class(F[r], Y[r], w[r], theta, offset=offset[r])
        for r in (slice(0, 7), slice(7, 30), slice(30, None))
    ]
    total = parts[0] + (parts[1] + parts[2])
    assert total.n == full.n
    assert total.value == pytest.approx(full.value, rel=1e-13)
    assert total.gradient == pytest.approx(full.gradient, abs=1e-12)
    assert total.hessian == pytest.approx(full.hessian, abs=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_a_row_of_no_weight_adds_nothing(shared):
    F, Y, w, theta, _ = model(shared=shared)
    w[::3] = 0.0
    one, other = softmax_by_class(F, Y, w, theta), softmax_by_class(F[w > 0], Y[w > 0], w[w > 0], theta)
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert one.hessian == pytest.approx(other.hessian, abs=1e-13)
