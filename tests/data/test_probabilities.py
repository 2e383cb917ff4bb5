"""Are the stated probabilities taken as they are, and what cannot be a probability refused by name?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.uniform import Uniform
from trueodds.lenses.lens_by_name import as_lens


def codes(preds: Predictions) -> list[str]:
    return [note.code for note in preds.notes]


def softmax_rows(n: int, k: int, dtype: Any) -> np.ndarray:
    z = np.random.default_rng(1).normal(size=(n, k)).astype(dtype) * dtype(4)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).astype(dtype)


# What is kept, to the last bit


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_softmax_of_any_dtype_is_accepted_and_not_altered(dtype: Any) -> None:
    # CalibrationTests.jl: a row-sum tolerance of 1.5e-8 refuses float32 softmax.
    P = softmax_rows(2000, 10, dtype)
    preds = Predictions(np.zeros(2000, int), P)
    assert np.array_equal(preds.p.astype(np.float64), P.astype(np.float64))
    assert preds.dtype == np.dtype(dtype).name


@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "inception_v3", "resnet18", "vgg16_bn"])
def test_the_published_float32_rows_of_a_network_are_accepted(net: str) -> None:
    # CalibrationTests.jl, as above; these rows are off by up to 4e-7.
    arrays = reference.data("widmann_cifar10_4nets.npz")
    assert Predictions(arrays["labels"], arrays[f"probs_{net}"]).n == 10_000


def test_one_value_of_one_plus_an_ulp_is_kept_noted_and_alters_no_other_row() -> None:
    # torchmetrics: one value of 1 + 1 ulp makes it softmax the whole batch, .051 becomes .360; probcal refuses it.
    above = 1 + np.finfo(np.float64).eps
    preds = Predictions([0, 1, 1], [0.051, above, 0.7])
    assert preds.p.tolist() == [0.051, above, 0.7]
    assert codes(preds) == ["TN102"]
    assert Uniform(10).fit(as_lens("positive").views(preds)[0]).index(preds.p).tolist() == [0, 9, 6]


def test_a_float32_value_of_one_plus_an_ulp_is_kept_too() -> None:
    above = np.nextafter(np.float32(1), np.float32(2))
    preds = Predictions([0, 1], np.array([[above, 0], [0, 1]], np.float32))
    assert preds.p[0, 0] == above
    assert codes(preds) == ["TN102"]


def test_more_than_rounding_above_one_is_refused() -> None:
    with refused("TO102", "row 1", "1.0001", fix="clipped"):
        Predictions([0, 1], [0.2, 1.0001])


def test_rows_off_by_rounding_get_a_counted_note_and_keep_their_values() -> None:
    # dividing by the sum would move .3 across a bin edge
    P = np.array([[0.3, 0.700001], [0.5, 0.5]])
    preds = Predictions([0, 1], P)
    assert preds.p.tolist() == P.tolist()
    assert codes(preds) == ["TN101"]
    assert preds.notes[0].text.startswith("1 row ")


def test_rows_off_by_more_than_the_tolerance_are_refused_and_the_worst_is_named() -> None:
    with refused("TO104", "row 2", "0.8", "2 such rows", fix="logits"):
        Predictions([0, 1, 1], [[0.5, 0.5], [0.45, 0.5], [0.4, 0.4]])


def test_a_missing_class_is_suggested_only_if_no_sum_exceeds_1() -> None:
    with refused("TO104", fix="If a class is missing, pass the columns of all classes; if these are logits"):
        Predictions([0, 1], [[0.5, 0.2], [0.4, 0.3]])
    with refused("TO104", fix="If these are logits"):
        Predictions([0, 1], [[0.5, 0.2], [0.9, 0.3]])


def test_sum_tolerance_admits_a_rounded_table() -> None:
    P = [[0.33, 0.33, 0.33], [0.5, 0.25, 0.25]]
    with refused("TO104", "0.99", "row 0"):
        Predictions([0, 1], P)
    preds = Predictions([0, 1], P, sum_tolerance=0.02)
    assert preds.p.tolist() == P
    assert codes(preds) == ["TN101"]


@pytest.mark.parametrize("tolerance", [-1, float("nan"), float("inf"), "0.1"])
def test_a_sum_tolerance_that_is_none_is_refused(tolerance: Any) -> None:
    with refused("TO203", repr(tolerance)):
        Predictions([0, 1], [[0.5, 0.5]] * 2, sum_tolerance=tolerance)


def test_float16_rows_get_the_tolerance_of_float16_whatever_their_byte_order() -> None:
    P = np.array([[0.1, 0.2, 0.7]] * 3, np.float16)
    P[:, 0] += np.float16(1e-3)
    for order in "<>":
        assert Predictions([0, 1, 2], P.astype(f"{order}f2")).dtype == "float16"
    with refused("TO104"):
        Predictions([0, 1, 2], P.astype(np.float64))


@pytest.mark.parametrize(
    "make", [np.asfortranarray, lambda P: P.astype(">f8"), lambda P: P.astype(">f4"), lambda P: P[:, ::-1][:, ::-1]]
)
def test_memory_layout_and_byte_order_change_nothing(make: Any) -> None:
    P = np.array([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]])
    assert Predictions([0, 1, 1], make(P)).p.tolist() == P.tolist()


def test_exact_zeros_and_ones_are_kept() -> None:
    # calzone-tool: p = 0 dropped (0.0 where .5 is true); pycalib: 1.0 dropped for 16 bin counts
    assert Predictions([0, 1], [0.0, 1.0]).p.tolist() == [0.0, 1.0]


def test_an_absent_class_keeps_its_column_and_nothing_is_renormalized() -> None:
    # probmetrics: absent classes dropped and rows renormalized (.112 becomes .084); venn-abers drops a column
    P = [[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]]
    preds = Predictions([0, 1], P)
    assert (preds.k, preds.p.tolist()) == (3, P)
    assert [view.name for view in as_lens("classwise").views(preds)] == ["class:0", "class:1", "class:2"]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only_is_data(label: int) -> None:
    # probcal refuses one-label data; most others crash or print a number without a word
    assert Predictions([label] * 3, [0.1, 0.5, 0.9]).n == 3


def test_a_single_row_is_data() -> None:
    assert Predictions([1], [0.3]).n == 1
    assert Predictions([1], [[0.3, 0.7]]).k == 2


# What is refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_with_its_place(bad: float) -> None:
    # torchmetrics: NaN gives a plausible number; mapie: NaN is ignored
    with refused("TO103", str(bad), "row 1"):
        Predictions([0, 1, 1], [0.2, bad, 0.3])
    with refused("TO103", str(bad), "row 1", "class 2"):
        Predictions([0, 1], [[0.2, 0.4, 0.4], [0.5, 0.5, bad]])


@pytest.mark.parametrize("bad", [-1e-17, -0.5])
def test_a_negative_probability_is_refused_however_small(bad: float) -> None:
    # netcal: out-of-range values are clipped in silence
    with refused("TO102", str(bad), "row 1", "1 such value"):
        Predictions([0, 1], [0.2, bad])


def test_minus_zero_is_zero() -> None:
    assert Predictions([0, 1], [-0.0, 1.0]).n == 2


def test_logits_passed_as_probabilities_are_refused_and_the_fix_says_so() -> None:
    # scikit-learn's temperature path and torchmetrics guess logits from the values
    with refused("TO102", "-2.0", "row 17, class 3", "1 such value", fix="logits=True"):
        P = np.full((20, 4), 0.25)
        P[17, 3] = -2
        Predictions(np.zeros(20, int), P)
    with refused("TO102", "row 0", fix="logits"):
        Predictions([0, 1], [-3.0, 2.0])


def test_rows_that_are_not_normalized_are_refused_and_the_fix_says_so() -> None:
    P = np.array([[0.9, 0.05, 0.05], [0.2, 0.3, 0.5]])
    with refused("TO102", "row 0, class 0", fix="divide each row by its sum"):
        Predictions([0, 1], 1.5 * P)
    assert Predictions([0, 1], 1.5 * P / (1.5 * P).sum(axis=1, keepdims=True)).n == 2


def test_percentages_are_refused_and_the_fix_says_so() -> None:
    with refused("TO102", "55.0", "row 0", fix="percentages"):
        Predictions([0, 1], [55.0, 43.0])
    with refused("TO102", "row 0, class 0", fix="percentages"):
        Predictions([0, 1], [[55.0, 45.0], [43.0, 57.0]])


@pytest.mark.parametrize(
    ("y", "p", "code"),
    [
        ([], [], "TO108"),
        ([0, 1], [], "TO108"),
        ([0, 1], np.zeros((2, 0)), "TO101"),
        ([0, 1], [[0.1], [0.2]], "TO101"),
        ([0, 1], np.zeros((2, 2, 2)), "TO101"),
        ([0, 1], 0.3, "TO101"),
        (1, [0.3], "TO101"),
        ([0, 1], None, "TO101"),
        ([0, 1], [[0.1, 0.9], [1.0]], "TO101"),
        ([0, 1], "ab", "TO101"),
        ([0, 1], ["a", "b"], "TO114"),
        ([0, 1], [0.1, 1j], "TO114"),
        ([0, 1], np.array(["2020", "2021"], "M8[Y]"), "TO114"),
        ([0, 1], {"p": [0.1, 0.2]}, "TO114"),
        ([[[0]], [[1]]], [0.1, 0.2], "TO101"),
        ([[0], [1]], [0.1, 0.2], "TO101"),
    ],
)
def test_wrong_shapes_and_kinds_are_refused(y: Any, p: Any, code: str) -> None:
    with refused(code):
        Predictions(y, p)


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000], ids=["400 digits", "negative", "5,000 digits"])
def test_an_integer_beyond_every_float_is_refused_by_row(value: int) -> None:
    for y, p, weight in (
        ([0, 1], [0.5, value], None),
        ([0, value], [0.5, 0.5], None),
        ([0, 1], [0.5, 0.5], [1, value]),
    ):
        with refused("TO114", f"{value.bit_length():,} bits in row 1"):
            Predictions(y, p, weight=weight)


def test_unequal_lengths_are_refused_and_never_truncated() -> None:
    # pycalib: unequal lengths truncated in silence
    with refused("TO107", "3 and 2", fix="truncated"):
        Predictions([0, 1, 1], [0.2, 0.3])
    with refused("TO107", "1 and 2"):
        Predictions.from_confidence([0.2, 0.3], [1])
    with refused("TO107", "(2, 2) and (1, 2)"):
        Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.3]])


# Arguments in the wrong order


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], ["a", "b"], np.array([0, 1], np.int8)])
def test_swapped_binary_arguments_are_recognized(labels: Any) -> None:
    # netcal checks the kinds of data by assert, and for positional arguments only
    with refused("TO109", "0.2", fix="swap"):
        Predictions([0.2, 0.7], labels)


@pytest.mark.parametrize("labels", [[0, 2], [0.0, 2.0], ["a", "b"]])
def test_swapped_multiclass_arguments_are_recognized(labels: Any) -> None:
    with refused("TO109", "(2, 3)", fix="swap"):
        Predictions([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], labels)


def test_swapped_votes_are_recognized() -> None:
    with refused("TO109", fix="swap"):
        Predictions([[0.2, 0.8], [0.1, 0.9]], [[3, 7], [0, 10]])


def test_a_certain_prediction_against_shared_votes_is_not_taken_for_a_swap() -> None:
    # Whether a batch happens to hold only 0 and 1 must not decide: the same row is fine beside others.
    assert Predictions([[0.3, 0.7]], [1.0]).n == 1


def test_swapped_confidence_is_recognized() -> None:
    for correct in ([1, 0], [1.0, 0.0], [True, False]):
        with refused("TO109", "0.9", fix="from_confidence(confidence, correct)"):
            Predictions.from_confidence(correct, [0.9, 0.4])


def test_swapped_multilabel_is_recognized() -> None:
    for Y in ([[0, 1], [1, 0]], [[0.0, 1.0], [1.0, 0.0]]):
        with refused("TO109", "0.2", fix="from_multilabel(Y, P)"):
            Predictions.from_multilabel([[0.2, 0.7], [0.6, 0.1]], Y)


# Logits


def test_logits_become_a_softmax_in_float64() -> None:
    z = np.array([[0.0, 1.0, -1.0], [1000.0, 0.0, -1000.0]], np.float32)
    preds = Predictions.from_logits([0, 1], z)
    # e^0, e^1, e^-1 over their sum 4.08616...
    assert preds.p[0] == pytest.approx(np.exp([0, 1, -1]) / np.exp([0, 1, -1]).sum(), rel=1e-15)
    assert preds.p[1].tolist() == [1.0, 0.0, 0.0]
    assert preds.p.dtype == np.float64


def test_log_odds_become_the_probability_of_the_second_class_without_overflow() -> None:
    preds = Predictions.from_logits([0, 1, 1], [-800.0, 0.0, 800.0])
    assert preds.p.tolist() == [0.0, 0.5, 1.0]
    two = Predictions.from_logits([1], [[0.0, 2.0]]).p[0, 1]
    assert Predictions.from_logits([1], [2.0]).p[0] == pytest.approx(two, rel=1e-15)


def test_a_log_probability_of_minus_infinity_is_an_exact_zero() -> None:
    assert Predictions.from_logits([0], [[0.0, -np.inf]]).p.tolist() == [[1.0, 0.0]]


def test_a_bad_logit_is_named_and_an_allowed_minus_infinity_is_not() -> None:
    with refused("TO103", "nan", "row 1, class 0", "1 such value"):
        Predictions.from_logits([0, 1], [[-np.inf, 0.0], [np.nan, 0.0]])
    with refused("TO103", "inf", "row 0, class 1"):
        Predictions.from_logits([0], [[0.0, np.inf]])
    with refused("TO103", "row 1"):
        Predictions.from_logits([0, 1], [[0.0, 0.0], [-np.inf, -np.inf]])
    with refused("TO103", "-inf", "row 0"):
        Predictions.from_logits([0], [-np.inf])
