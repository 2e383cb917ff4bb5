"""Do views that make their columns on demand say the same as those that were handed them?"""

import gc
import weakref

import numpy as np
import pytest

import trueodds as to
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.estimators.binned import BinnedError, MaxError
from trueodds.lenses.effective_sample_size import effective_n, has_integer_weights
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import SUMS, View


def rows(n=400, k=4, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k) / 2, n)
    P[: n // 3] = np.round(P[: n // 3] * 20) / 20
    P[: n // 3, -1] = 1 - P[: n // 3, :-1].sum(axis=1)
    return rng.integers(0, k, n), np.abs(P).astype(dtype)


def handed(view):
    """The same rows, with every column there from the start."""
    return View(np.array(view.p), np.array(view.y), np.ones(len(view)), name=view.name, classes=view.classes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lens", ["confidence", "class:2", "classwise"])
@pytest.mark.parametrize("cells", [Uniform(15), Uniform(100), FixedEdges((0.0, 0.05, 0.3, 1.0)), EqualMass(7)], ids=str)
def test_every_sum_is_that_of_the_columns(lens, dtype, cells):
    y, P = rows(dtype=dtype)
    for view in as_lens(lens).views(to.Predictions(y, P, sum_tolerance=1e-3)):
        frozen = cells.fit(view)
        binned, expected = view.binned(frozen), handed(view)
        expected = expected.pool(frozen.index(expected.partition_values), frozen.size)
        assert binned.bin_index.tolist() == expected.bin_index.tolist()
        for name in ("n", "w", "p", "y"):
            np.testing.assert_allclose(getattr(binned, name), getattr(expected, name), rtol=1e-12, atol=1e-15)
        for name in SUMS:
            np.testing.assert_allclose(binned.sums(name), expected.sums(name), rtol=1e-10, atol=1e-12)


def test_sums_are_made_without_making_columns():
    y, P = rows()
    (view,) = as_lens("confidence").views(to.Predictions(y, P, sum_tolerance=1e-3))
    assert (len(view), view.n_rows, view.total, effective_n(view), has_integer_weights(view), view.joint) == (
        400,
        400,
        400,
        400,
        True,
        False,
    )
    BinnedError().value(view)
    assert not {"p", "y", "w"} & vars(view).keys()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("lens", ["confidence", "class:2", "classwise"])
def test_equal_mass_needs_no_columns(lens, dtype):
    y, P = rows(dtype=dtype)
    preds = to.Predictions(y, P, sum_tolerance=1e-2)
    for view, read in zip(as_lens(lens).views(preds), as_lens(lens).views(preds), strict=True):
        assert read.p.dtype in (np.float32, dtype)
        expected = BinnedError(EqualMass(7)).value(read)  # columns first
        assert BinnedError(EqualMass(7)).value(view) == expected
        assert not view.has_columns
        assert view.p.tolist() == read.p.tolist()
        assert view.outcomes.tolist() == read.outcomes.tolist()
        assert view.y.tolist() == read.y.tolist()


@pytest.mark.parametrize(
    "error", [BinnedError(), BinnedError(Uniform(7)), MaxError(), MaxError(min_count=200)], ids=str
)
def test_all_classes_at_once_are_each_class_by_itself(error):
    y, P = rows()
    preds = to.Predictions(y, P, sum_tolerance=1e-3)
    views = as_lens("classwise").views(preds)
    alone = [error.value(handed(view)) for view in views]
    np.testing.assert_allclose(error.values(views), alone, rtol=1e-12)
    np.testing.assert_allclose(error.values(views[1:3]), alone[1:3], rtol=1e-12)


def test_tied_maxima_are_counted_once_and_kept():
    P = np.array([[0.5, 0.5, 0.0], [0.4, 0.2, 0.4], [0.2, 0.3, 0.5]])
    preds = to.Predictions([0, 2, 2], P)
    assert preds._n_tied is None
    estimate = to.measure(preds, "ece", lens="confidence", interval=None)
    assert preds._n_tied == 2
    cut_alike = to.Predictions([0, 2, 2], P)
    to.measure(cut_alike, "ece", lens="confidence", partition="equal-mass", interval=None)
    assert cut_alike._n_tied == 2
    assert any(note.code == "TN103" and note.text.startswith("2 rows") for note in estimate.notes)
    assert to.Predictions([0, 2, 2], P).tied == preds.tied == 2
    assert preds[[2]].tied == 0
    assert to.Predictions([0, 1, 1], [0.5, 0.2, 0.9]).tied == 1


@pytest.mark.parametrize("lens", ["confidence", "class:2"])
def test_what_a_view_keeps_does_not_keep_the_view(lens):
    y, P = rows()
    (view,) = as_lens(lens).views(to.Predictions(y, P, sum_tolerance=1e-3))
    for estimator in (BinnedError(), BinnedError(EqualMass(5))):
        estimator(view)
    gone = weakref.ref(view.rows)
    gc.disable()
    try:
        del view, estimator
        assert gone() is None  # freed at once: no circle had to be found by the collector
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical"])
def test_an_estimate_and_a_test_free_their_views_without_the_collector(lens):
    y, P = rows()
    preds = to.Predictions(y, P, sum_tolerance=1e-3)

    def analyze():
        to.measure(preds, "ece", lens=lens, resamples=100)
        to.measure(preds, "debiased_l2", lens="class:2", resamples=100)
        to.test(preds, "omnibus", lens=lens, resamples=99)

    analyze()
    gc.collect()
    gc.disable()
    try:
        before = sum(type(item) is View for item in gc.get_objects())
        analyze()
        assert sum(type(item) is View for item in gc.get_objects()) == before
    finally:
        gc.enable()


def test_reading_weights_of_one_does_not_make_rows_weighted():
    y, P = rows()
    views = as_lens("classwise").views(to.Predictions(y, P, sum_tolerance=1e-3))
    assert views[0].w.tolist() == views[0].n.tolist() == [1.0] * 400
    assert views[0].is_unweighted
    assert views[1].w is views[0].w  # one array for all classes
    with pytest.raises(ValueError, match="read-only"):
        views[0].w[0] = 2.0


def test_released_columns_are_computed_again():
    y, P = rows()
    (view,) = as_lens("class:2").views(to.Predictions(y, P, sum_tolerance=1e-3))
    before = {name: getattr(view, name).tolist() for name in ("p", "y", "q")}
    products = view.cached("sums", lambda: view.sums("wpy"))
    view.release()
    assert not view.has_columns
    assert view.cached("sums", lambda: None) is None
    assert {name: getattr(view, name).tolist() for name in before} == before
    assert view.sums("wpy").tolist() == products.tolist()
    own = View(p=[0.9, 0.8], y=[1, 0])
    own.release()  # without a source the columns stay
    assert (own.p.tolist(), own.y.tolist()) == ([0.9, 0.8], [1.0, 0.0])


def test_bool_outcomes_are_float64_where_they_are_read():
    view = View(p=np.eye(2), y=np.eye(2) == 1)
    assert view.outcomes.dtype == bool
    assert (view.y.dtype, view.y.tolist()) == (np.float64, [[1.0, 0.0], [0.0, 1.0]])


def test_labels_of_a_large_table_are_checked_as_those_of_a_small_one():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 70_000)  # more than 2**18 values: the compiled look
    y = rng.integers(0, 4, 70_000)
    assert to.Predictions(y, P).notes == ()
    for spoil, code in ((np.nan, "TO103"), (-0.25, "TO102"), (1.5, "TO102"), (np.inf, "TO103")):
        bad = P.copy()
        bad[66_000, 2] = spoil
        with pytest.raises(to.InputError) as refused:
            to.Predictions(y, bad)
        assert refused.value.code == code
        assert "row 66000" in str(refused.value).replace(",", "")
    unnormalized = P.copy()
    unnormalized[66_000, 0] += 0.01
    with pytest.raises(to.InputError, match="row 66000") as refused:
        to.Predictions(y, unnormalized)
    assert refused.value.code == "TO104"
    near = P.astype(np.float32)
    near[5, 0] += np.float32(3e-6)
    (note,) = to.Predictions(y, near).notes
    assert note.code == "TN101"
    zero = P.copy()
    zero[3] = [-0.0, 0.5, 0.25, 0.25]  # −0 is a zero
    assert to.Predictions(y, zero).n == 70_000
    with pytest.raises(to.InputError) as refused:
        to.Predictions(np.where(np.arange(70_000) == 9, 4, y), P)
    assert refused.value.code == "TO105"


def test_an_unknown_sum_is_refused() -> None:
    with pytest.raises(KeyError, match="wwy"):
        View(p=[0.9, 0.8], y=[1, 0]).sums("wwy")
