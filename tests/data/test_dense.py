"""Images of labels as rows."""

import numpy as np
import pytest

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def images(n=6, side=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), (n, side, side))
    y = (P.cumsum(axis=-1) < rng.random((n, side, side, 1))).sum(axis=-1)
    return y, P


def test_every_pixel_is_a_row_and_its_image_a_cluster():
    y, P = images()
    rows = to.Predictions.from_dense(y, P, axis=-1)
    assert rows.n == 6 * 25
    assert np.bincount(rows.cluster).tolist() == [25] * 6
    flat = to.Predictions(y.reshape(-1), P.reshape(-1, 3))
    assert float(to.measure(rows, "ece", interval=None)) == float(to.measure(flat, "ece", interval=None))


def test_classes_may_stand_behind_the_images_as_networks_give_them():
    y, P = images()
    first, last = Predictions.from_dense(y, np.moveaxis(P, -1, 1)), Predictions.from_dense(y, P, axis=-1)
    np.testing.assert_array_equal(first.P, last.P)
    np.testing.assert_array_equal(first.y, last.y)


def test_ignored_pixels_are_no_rows_and_are_counted():
    y, P = images()
    y = y.copy()
    y[0, :2], y[3, 4, 4] = 255, 254
    rows = Predictions.from_dense(y, P, axis=-1, ignore=(254, 255))
    assert rows.n == 150 - 11
    (note,) = [note for note in rows.notes if note.code == "TN143"]
    assert note.text.startswith("11 of 150")
    assert "TN143" in {note.code for note in to.measure(rows, "ece", resamples=50).notes}
    with pytest.raises(InputError, match="TO"):
        Predictions.from_dense(y, P, axis=-1)  # 255 is no class unless it is said to be ignored


@pytest.mark.parametrize("axis", [0, 5, -9])
def test_an_axis_that_holds_no_classes_is_refused(axis):
    y, P = images()
    with pytest.raises(InputError, match=r"TO107.*axis"):
        Predictions.from_dense(y, P, axis=axis)


def test_shapes_that_do_not_fit_are_refused():
    y, P = images()
    with pytest.raises(InputError, match=r"TO107.*labels \(5"):
        Predictions.from_dense(y[:5], P, axis=-1)
    with pytest.raises(InputError, match="TO108"):
        Predictions.from_dense(np.full_like(y, 255), P, axis=-1, ignore=255)


def test_errors_quote_the_shapes_that_were_passed_and_the_axis_that_fits():
    y, P = images(n=4, side=5, k=3)
    with pytest.raises(InputError, match=r"labels \(4, 5, 5\), probs \(4, 5, 5, 3\), axis=1\. Pass axis=3"):
        Predictions.from_dense(y, P)
    with pytest.raises(InputError, match=r"probs \(4, 3, 5, 5\), axis=-1\. Pass axis=1"):
        Predictions.from_dense(y, np.moveaxis(P, -1, 1), axis=-1)
    with pytest.raises(InputError, match=r"TO107.*probs \(4, 5, 5\), axis=1.*foreground"):
        Predictions.from_dense(np.eye(3)[y], P[..., 0])  # nothing fits
    with pytest.raises(InputError, match=r"probs \(4, 1, 5, 5\).*probs.squeeze\(1\)"):
        Predictions.from_dense(y, P[:, None, ..., 0])


def test_raw_scores_of_every_place_are_taken():
    y, P = images()
    dense, scored = (
        Predictions.from_dense(y, P, axis=-1),
        Predictions.from_dense(y, np.log(P) + 2.0, axis=-1, logits=True),
    )
    np.testing.assert_allclose(scored.P, dense.P, atol=1e-12)
    assert scored.logits is not None
    with pytest.raises(InputError, match=r"TO102.*image 0, position \(0, 0\), class.*pass logits=True\.$"):
        Predictions.from_dense(y, np.log(P), axis=-1)


def test_probabilities_of_the_foreground_are_two_classes():
    y, P = images()
    one = Predictions.from_dense(y == 2, P[..., 2])
    both = Predictions.from_dense((y == 2).astype(int), np.stack([1 - P[..., 2], P[..., 2]], axis=1))
    np.testing.assert_allclose(one.P, both.P)
    np.testing.assert_array_equal(one.y, both.y)
    np.testing.assert_array_equal(one.cluster, both.cluster)
    odds = Predictions.from_dense(y == 2, np.log(P[..., 2] / (1 - P[..., 2])), logits=True, ignore=7)
    np.testing.assert_allclose(odds.p, one.p, atol=1e-12)


def test_one_hot_labels_are_not_taken_for_the_foreground():
    y, P = images()
    with pytest.raises(InputError, match=r"TO107.*argmax"):
        Predictions.from_dense(np.eye(3)[y], P, axis=-1)
    assert Predictions.from_dense(np.eye(3)[y], P, axis=None).k == 2  # said in so many words


def test_a_label_of_no_class_is_shown_in_its_image_with_the_way_out():
    y, P = images()
    y = y.copy()
    y[3, 4, 2] = 255
    with pytest.raises(InputError, match=r"TO105.*255 in image 3, position \(4, 2\).*pass ignore=255"):
        Predictions.from_dense(y, P, axis=-1)
    with pytest.raises(InputError, match=r"If 255 is the foreground, pass labels == 255"):
        Predictions.from_dense(np.where(y == 1, 255, 0), P[..., 1])


def test_the_first_bad_value_is_shown_in_its_image_though_pixels_before_it_were_left_out():
    y, P = images()
    y, P = y.copy(), P.copy()
    y[0] = 255
    P[2, 1, 3] = 0.5
    with pytest.raises(InputError, match=r"TO104.*1\.5 in image 2, position \(1, 3\)"):
        Predictions.from_dense(y, P, axis=-1, ignore=255)


def test_several_labels_of_a_place_are_labels_of_their_own():
    # Without an axis of classes the arrays have the same shape, too; only labels and probabilities that both sum to 1
    # along it look one-hot.
    y, P = images()
    two_of_three = 1 - np.eye(3)[y]
    assert Predictions.from_dense(two_of_three, (1 - P) / 2, axis=-1).k == 2
    assert Predictions.from_dense(np.eye(3)[y], P**2, axis=-1).k == 2
