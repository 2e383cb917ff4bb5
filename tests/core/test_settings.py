"""Are settings checked once, by their annotations, wherever they are given?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import InputError, Predictions
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.kernel import KernelSpec
from trueodds.core.errors import describe
from trueodds.core.settings import (
    OR_SINGLE_VALUE,
    BinCount,
    Count,
    Level,
    OneOf,
    Order,
    Range,
    Settings,
    check,
    declared_settings,
)
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError
from trueodds.hypotests import TESTS
from trueodds.hypotests.consistency import Consistency
from trueodds.lenses.classes import Class, Groups
from trueodds.lenses.ranked import TopK

REGISTRIES = (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS)


def kind(value: Any) -> str:
    """An id for values of which not all can be written down."""
    return type(value).__name__


TWO = Predictions([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4])


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (np.int64(5), Count, 5),
        (np.float32(0.5), Level, 0.5),
        (2, Order, 2),
        (Fraction(1, 2), Level, 0.5),
        (math.inf, Order, math.inf),
        (-0.0, Annotated[float, Range(0)], 0.0),
        (np.True_, bool, True),
        (np.str_("auto"), Literal["auto"], "auto"),
        (None, Count | None, None),
        (np.array([0.0, 1.0]), tuple[float, ...], (0.0, 1.0)),
        (pd.Series([1, 2]), tuple[Count, ...], (1, 2)),
        (0.9, Annotated[tuple[Level, ...], OR_SINGLE_VALUE], (0.9,)),
        (np.int8(2), Literal[1, 2], 2),
    ],
    ids=kind,
)
def test_numpy_scalars_are_kept_as_python_s_and_sequences_as_tuples(value: Any, hint: Any, expected: Any) -> None:
    actual = check("x", value, hint)
    assert (actual, type(actual)) == (expected, type(expected))


@pytest.mark.parametrize(
    "value",
    [True, 0, -1, 1.0, "5", math.nan, 10**400, 10**5000, np.array(5), np.array([1, 2]), [1], pd.NA, pd.NaT, None,
     Decimal(5), b"5", {1}, {}, object, 2**53 + 1, np.datetime64("2020-01-01"), np.ma.masked],
    ids=kind,
)  # fmt: skip
def test_what_is_no_count_is_refused(value: Any) -> None:
    with refused("TO203", fix="x=15"):
        check("x", value, Count, 15)


@pytest.mark.parametrize(
    "value", [None, math.nan, "1", True, 0.5, -math.inf, 10**400, 1j, Decimal("1.5"), [1], np.ones(2)], ids=kind
)
def test_what_is_no_order_is_refused_wherever_it_is_given(value: Any) -> None:
    for give in (lambda: BinnedError(order=value), lambda: to.measure(TWO, "ece", order=value)):
        with refused("TO203", fix="order=1.0"):
            give()


def test_an_instance_is_checked_like_a_name() -> None:
    with refused("TO203", "None", fix="order=1.0"):
        BinnedError(Uniform(15), order=None)  # type: ignore[arg-type]
    with refused("TO203", "array of shape (2,)"):
        Uniform(np.array([1, 2]))  # type: ignore[arg-type]
    with refused("TO203", "'unifrom'"):
        Consistency(redraw="unifrom")
    with refused("TO203"):
        KernelSpec(bandwidth=50.0, scale="probability")
    with refused("TO203"):
        TopK(True)
    with refused("TO203"):
        Class([1, 2])  # type: ignore[arg-type]
    with refused("TO203"):
        Groups((({0},), (1,)))  # type: ignore[arg-type]


def test_numpy_settings_give_the_number_and_the_hash_of_python_s() -> None:
    assert EqualMass(np.int64(5)) == EqualMass(5)  # type: ignore[arg-type]
    assert hash(FixedEdges(np.array([0, 0.5, 1]))) == hash(FixedEdges((0, 0.5, 1)))  # type: ignore[arg-type]
    plain, numpy = (
        to.measure(TWO, "ece", bins=k, order=q, interval=None) for k, q in ((5, 2.0), (np.int32(5), np.float32(2)))
    )
    assert plain.to_dict() == numpy.to_dict()


def test_a_range_says_which_ends_belong_to_it() -> None:
    assert [x in Range(0, 1, closed="left") for x in (0, 0.5, 1, math.nan)] == [True, True, False, False]
    texts = [str(Range(0, 1, closed=ends)) for ends in ("both", "left", "right", "neither")]
    assert texts == ["in [0, 1]", "in [0, 1)", "in (0, 1]", "in (0, 1)"]
    assert (str(Range(2)), str(Range(0, closed="neither")), str(Range())) == ("of at least 2", "above 0", "")


def test_a_misspelled_word_is_refused_with_the_near_one() -> None:
    with refused("TO203", "'equal-mas'", fix="equal-mass"):
        check("partition", "equal-mas", BinCount | Annotated[str, OneOf(("uniform", "equal-mass"))], "uniform")


@pytest.mark.parametrize(
    "value", ["x" * 5000, list(range(5000)), np.zeros(5000), pd.DataFrame({"a": range(99)}), 10**5000], ids=kind
)
def test_a_value_is_shown_in_one_short_line(value: Any) -> None:
    assert 0 < len(describe(value)) <= 80
    assert "\n" not in describe(value)


def test_an_object_that_cannot_be_written_down_is_refused_like_any_other() -> None:
    class Speechless:
        def __repr__(self) -> str:
            raise RuntimeError

    with refused("TO203", "Speechless"):
        BinnedError(order=Speechless())  # type: ignore[arg-type]


def test_a_function_that_cannot_be_called_so_is_an_input_error() -> None:
    for name, function in (("region", lambda: 1), ("hypothesis", int)):
        with refused("TO203", "TypeError"):
            (to.measure if name == "region" else to.test)(
                TWO, "ece" if name == "region" else "consistency", **{name: function}
            )


@pytest.mark.parametrize(
    "text",
    ["top-" + "9" * 5000, "rank:" + "9" * 5000, "groups:[[[0]]]", "groups:" + "[" * 10_000, "class:" + "9" * 5000],
    ids=("top", "rank", "nested", "deep", "class"),
)
def test_a_lens_of_thousands_of_digits_or_brackets_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        to.measure(TWO, "ece", lens=text)
    assert caught.value.code == "TO204"
    assert len(caught.value.got) <= 100


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_setting_of_every_method_has_an_annotation_that_is_checked(registry: Any) -> None:
    for name in registry.names():
        method = registry.load(name)
        assert issubclass(method, Settings)
        assert set(declared_settings(method)) == {field.name for field in dataclasses.fields(method) if field.init}, (
            name
        )


def bare(hint: Any) -> bool:
    """Whether an annotation lets any number through."""
    if get_origin(hint) in (Annotated, Callable):
        return False
    return hint in (int, float) or any(bare(arg) for arg in get_args(hint))


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_number_among_the_settings_has_a_range(registry: Any) -> None:
    unranged = {
        (name, setting)
        for name in registry.names()
        for setting, (hint, _) in declared_settings(registry.load(name)).items()
        if bare(hint)
    }
    known = {  # a width whose range is that of its scale; numbers by class, and names that are numbers
        ("kernel", "bandwidth"), ("reliability_curve", "bandwidth"), ("prior_shift", "priors"),
        ("recalibration_lines", "classes"), ("mcllo_parameters", "classes"),
    }  # fmt: skip
    assert unranged <= known


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_the_defaults_of_every_method_are_allowed(registry: Any) -> None:
    for name in registry.names():
        for setting, (hint, default) in declared_settings(registry.load(name)).items():
            if default is not dataclasses.MISSING:
                assert check(setting, default, hint) == default


def test_a_class_with_a_name_that_only_a_type_checker_knows_is_not_checked() -> None:
    @dataclasses.dataclass(frozen=True)
    class Own(Settings):
        order: NowhereImported = 1  # type: ignore[name-defined]  # noqa: F821

    assert Own("anything").order == "anything"
