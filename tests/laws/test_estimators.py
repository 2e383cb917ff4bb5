"""Do the laws that hold for every estimator hold for each member of the registry, lens by lens, partition by partition?

The members come from the registry, so a new one is judged without a line here. A law that cannot hold for a
member is named in its `exemptions`, with the reason.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.estimators.values_by_view import measure_views
from tests.slow_parameters import law_examples
from trueodds import InputError, Predictions, measure
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.partition import BIN_RULES
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

Problem = tuple[Array, Array, Array]  # labels, probabilities, weights
LAWFUL = law_examples()

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"bins": 10},
    {"bins": 4, "closed": "left"},
    {"partition": "uniform", "bins": "sqrt"},
    {"partition": "equal-mass", "bins": 4},
    {"partition": "sweep"},
    {"min_size": 2},
    {"partition": "simplex-grid", "bins": 4},
)
LENSES = ("canonical", "confidence", "classwise", "class:1", "rank:2", "top-2", "groups:[[0,2],[1]]")
INVARIANCES = {
    "row order", "weight two", "zero weight", "weight scale", "one-hot votes", "class order", "two classes", "cells",
}  # fmt: skip
# A weight of two is two rows, so scaling all weights changes how many rows a rule that counts rows divides.
COUNTS_ROWS = "scaling the weights changes the counts that are divided"
COUNTS_BINS = "the number of bins follows what importance weights are worth"


@dataclasses.dataclass(frozen=True)
class Case:
    """One member with one choice of cells."""

    name: str
    settings: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.settings)])

    @property
    def estimator(self) -> Estimator:
        return made(self.name, self.settings)

    @property
    def lenses(self) -> tuple[str, ...]:
        return meaningful_lenses(self)


@cache
def made(name: str, options: tuple[tuple[str, Any], ...]) -> Estimator:
    return ESTIMATORS.make(name, dict(options))


@cache
def meaningful_lenses(case: Case) -> tuple[str, ...]:
    """The lenses that the member does not refuse. They are found in the tests, as collecting should compile nothing."""
    example = Predictions([0, 1, 2] * 8, np.random.default_rng(0).dirichlet([1, 1, 1], 24))
    lenses = []
    for lens in LENSES:
        try:
            measure_views(case.estimator, as_lens(lens).views(example))
        except InputError as refusal:
            if refusal.code not in ("TO204", "TO205"):
                raise
        else:
            lenses.append(lens)
    assert lenses, f"{case} has no lens"
    return tuple(lenses)


def takes_settings(name: str, options: Mapping[str, Any]) -> bool:
    try:
        ESTIMATORS.make(name, options)
    except InputError as refusal:
        if not options or refusal.code not in ("TO202", "TO203"):
            raise
        return False
    return True


CASES = [
    Case(name, tuple(options.items()))
    for name in ESTIMATORS.names()
    for options in SETTINGS
    if takes_settings(name, options)
]


def parametrized(cases: list[Case]) -> Any:
    """Cases with settings are slow tests, except for three estimators: the others use the same partitions and sums."""
    quick = ("ece", "debiased_l2", "ece_linear")
    slow = [[pytest.mark.slow] if case.settings and case.name not in quick else [] for case in cases]
    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=marks) for case, marks in zip(cases, slow, strict=True)], ids=str
    )


every_case = parametrized(CASES)


def under(invariance: str, *, without: str = "") -> Any:
    """The cases that a law binds: those of members that are not exempt from it."""
    bound = [case for case in CASES if invariance not in type(case.estimator).exemptions]
    bound = [case for case in bound if not (without == COUNTS_ROWS and counts_rows(case))]
    bound = [case for case in bound if not (without == COUNTS_BINS and dict(case.settings).get("bins") in BIN_RULES)]
    return parametrized(bound)


def counts_rows(case: Case) -> bool:
    partition = getattr(case.estimator, "partition", None)
    return isinstance(partition, (EqualMass, Sweep))


# Data: decimal scores, where ties and edges lie, and raw floats


def problems(k: int = 3, weights: str = "any") -> st.SearchStrategy[Problem]:
    """A few rows. Only the kind of the data, their number and a seed are drawn: that is a tenth of the time."""
    kinds = st.sampled_from(["tenths", "twentieths", "floats"])
    kind_of_weights = st.sampled_from(["whole", "real"] if weights == "any" else [weights])
    return st.builds(rows, st.just(k), kinds, kind_of_weights, st.integers(1, 14), st.integers(0, 2**32 - 1))


def rows(k: int, kind: str, weights: str, n: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    if kind == "floats":
        P = rng.dirichlet([0.7] * k, n)
    else:
        denominator = {"tenths": 10, "twentieths": 20}[kind]
        P = (
            np.diff(
                np.sort(rng.integers(0, denominator + 1, (n, k - 1)), axis=1), axis=1, prepend=0, append=denominator
            )
            / denominator
        )
    w = rng.integers(0, 4, n).astype(float) if weights == "whole" else rng.random(n) * 5 + 0.01
    w[0] = max(w[0], 1)  # not all zero
    return rng.integers(0, k, n), P, w


WHICH = st.integers(0, 10**6)  # each example looks through one of the case's lenses


def one_of(lenses: tuple[str, ...], which: int) -> str:
    return lenses[which % len(lenses)]


def value(case: Case, lens: str, preds: Predictions) -> tuple[float, Mapping[str, float]]:
    return measure_views(case.estimator, as_lens(lens).views(preds))


def same(a: float, b: float) -> bool:
    """Equal up to the rounding of sums of a few dozen terms; infinities and absent numbers equal themselves."""
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def agree(case: Case, lens: str, a: Predictions, b: Predictions) -> None:
    """The same whole and the same parts by name, in whichever order."""
    one, other = value(case, lens, a), value(case, lens, b)
    assert same(one[0], other[0]), (lens, one, other)
    assert set(one[1]) == set(other[1])
    assert all(same(one[1][part], other[1][part]) for part in one[1]), (lens, one, other)


# The laws


def test_every_estimator_is_tested_and_exemptions_name_an_invariance_and_a_reason() -> None:
    assert {case.name for case in CASES} == set(ESTIMATORS.names())
    for name in ESTIMATORS.names():
        for invariance, reason in ESTIMATORS.load(name).exemptions.items():
            assert invariance in INVARIANCES, (name, invariance)
            assert len(reason.split()) > 3, (name, invariance, reason)
    ece = next(case for case in CASES if str(case) == "ece")
    assert ece.lenses == LENSES


@pytest.mark.claim("docs/evidence.md", "The order of the rows is irrelevant.", "laws: the order of rows")
@under("row order")
@LAWFUL
@given(problem=problems(), which=WHICH)
def test_row_order_is_irrelevant(case: Case, problem: Problem, which: int) -> None:
    y, P, w = problem
    order = np.random.default_rng(which).permutation(len(y))
    agree(
        case, one_of(case.lenses, which), Predictions(y, P, weight=w), Predictions(y[order], P[order], weight=w[order])
    )


@pytest.mark.claim("docs/evidence.md", "A weight of two is two rows.", "laws: a weight of two")
@under("weight two", without=COUNTS_BINS)
@LAWFUL
@given(problem=problems(weights="whole"), which=WHICH)
def test_a_weight_of_two_is_two_rows(case: Case, problem: Problem, which: int) -> None:
    y, P, w = problem
    weighted = Predictions(y, P, weight=w)
    agree(case, one_of(case.lenses, which), weighted, weighted.expand_frequencies())


@under("zero weight")
@LAWFUL
@given(problem=problems(weights="real"), extra=problems(), which=WHICH)
def test_a_row_of_weight_zero_changes_nothing(case: Case, problem: Problem, extra: Problem, which: int) -> None:
    (y, P, w), (y0, P0, _) = problem, extra
    padded = Predictions(np.r_[y, y0], np.r_[P, P0], weight=np.r_[w, np.zeros(len(y0))])
    plain, lens = Predictions(y, P, weight=w), one_of(case.lenses, which)
    agree(case, lens, plain, padded)
    for a, b in zip(as_lens(lens).views(plain), as_lens(lens).views(padded), strict=True):
        assert case.estimator(a).n == case.estimator(b).n == len(y)


@under("weight scale", without=COUNTS_ROWS)
@LAWFUL
@given(problem=problems(weights="real"), scale=st.sampled_from([0.001, 0.3, 7.0, 1e6]), which=WHICH)
def test_scaling_all_weights_changes_nothing(case: Case, problem: Problem, scale: float, which: int) -> None:
    y, P, w = problem
    w = w + np.pi / 10  # no whole weights: those would be counts of rows
    agree(
        case, one_of(case.lenses, which), Predictions(y, P, weight=w), Predictions(y, P, weight=w * scale * np.sqrt(2))
    )


@every_case
@LAWFUL
@given(problem=problems(), which=WHICH)
def test_weights_of_one_are_no_weights(case: Case, problem: Problem, which: int) -> None:
    y, P, _ = problem
    agree(case, one_of(case.lenses, which), Predictions(y, P), Predictions(y, P, weight=np.ones(len(y))))


@under("one-hot votes")
@LAWFUL
@given(problem=problems(), votes=st.integers(1, 50), which=WHICH)
def test_one_hot_votes_are_hard_labels(case: Case, problem: Problem, votes: int, which: int) -> None:
    y, P, w = problem
    hard, voted = Predictions(y, P, weight=w), Predictions(np.eye(3)[y] * votes, P, weight=w)
    agree(case, one_of(case.lenses, which), hard, voted)


@pytest.mark.claim("docs/evidence.md", "Names and order of the classes are irrelevant.", "laws: names and order")
@under("class order")
@LAWFUL
@given(problem=problems(), order=st.permutations(range(3)), which=WHICH)
def test_permuting_classes_permutes_the_parts_and_keeps_the_whole(
    case: Case, problem: Problem, order: list[int], which: int
) -> None:
    y, P, w = problem
    # Tied maxima go to the lowest class, and tied variances to the first axis: those depend on the order of classes.
    assume(all(len(set(row)) == 3 for row in P.tolist()))
    lens = one_of(tuple(lens for lens in case.lenses if lens.split(":")[0] not in ("class", "groups")), which)
    tree = isinstance(getattr(case.estimator, "partition", None), (MedianVariance, type(None)))
    assume(not tree or lens not in ("canonical", "top-2") or untied(P))
    names = ["red", "green", "blue"]
    moved = Predictions(np.argsort(order)[y], P[:, order], weight=w, classes=[names[c] for c in order])
    agree(case, lens, Predictions(y, P, weight=w, classes=names), moved)


def untied(P: Array) -> bool:
    """Whether no set of rows has two axes of equal variance: told by single rows, so only for raw floats."""
    return bool((np.abs(P * 20 - np.rint(P * 20)) > 1e-9).all())


@under("two classes")
@LAWFUL
@given(problem=problems(k=2), which=WHICH)
def test_one_column_is_two_columns(case: Case, problem: Problem, which: int) -> None:
    y, P, w = problem
    p = P[:, 1]
    one, two = Predictions(y, p, weight=w), Predictions(y, np.stack([1 - p, p], axis=1), weight=w)
    lenses = tuple(lens for lens in case.lenses if lens in ("canonical", "confidence", "classwise", "class:1"))
    agree(case, one_of((*lenses, "positive") if "class:1" in lenses else lenses, which), one, two)


@parametrized(
    [
        case
        for case in CASES
        if not case.estimator.needs_rows
        and "cells" not in type(case.estimator).exemptions
        and dict(case.settings) in ({}, {"bins": 10}, {"bins": 4, "closed": "left"})
    ]
)
@LAWFUL
@given(problem=problems())
def test_cells_of_a_finer_grid_give_the_number_of_the_rows(case: Case, problem: Problem) -> None:
    y, P, w = problem
    closed = dict(case.settings).get("closed", "right")
    lenses = {"confidence", "class:1", "rank:2"} & set(case.lenses)
    assert lenses
    for lens in lenses:
        (rows,) = as_lens(lens).views(Predictions(y, P, weight=w))
        grid = Uniform(240, closed).fit(rows)  # 4, 10 and 15 bins nest in it
        index = grid.index(rows.partition_values)
        cells = rows.pool(index, grid.size)
        occupied = np.unique(index[w > 0])
        at = (occupied + (1 if closed == "right" else 0)) / 240
        sums = {name: cells.sums(name) for name in ("ww", "wpp", "wpy", "wyy", "wwv", "wwr")}
        rebuilt = View(
            cells.p, cells.y, cells.w, n=cells.n, sums=sums, partition_values=at, name=rows.name, classes=rows.classes
        )
        assert same(case.estimator.value(rebuilt), case.estimator.value(rows)), lens
        assert case.estimator(rebuilt).n == case.estimator(rows).n


@every_case
@LAWFUL
@given(problem=problems(), which=WHICH)
def test_a_result_is_deterministic_complete_and_leaves_its_input_alone(
    case: Case, problem: Problem, which: int
) -> None:
    y, P, w = problem
    before = [array.copy() for array in problem]
    for view in as_lens(one_of(case.lenses, which)).views(Predictions(y, P, weight=w)):
        result = case.estimator(view)
        twin = dataclasses.replace(case.estimator)  # the same settings again
        assert twin == case.estimator
        for repeat in (case.estimator(view), twin(view)):
            assert str(repeat) == str(result)
            assert repeat.to_dict() == result.to_dict()
        assert same(float(result), case.estimator.value(view))
        document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        name, *_ = document["estimator"].partition("@")  # followed by a setting, as in risk@0.8
        assert (name, document["lens"], document["n"]) == (case.name, view.name, int((w > 0).sum()))
        assert "\n" not in repr(result)
        if (partition := getattr(case.estimator, "partition", None)) is not None:
            assert document["settings"]["partition"] == str(partition)
    assert all(np.array_equal(a, b) for a, b in zip(before, problem, strict=True))


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_a_vector_per_row_is_measured_or_refused(name: str) -> None:
    """Regression: notes of the data, which were collected before the value, failed in NumPy for a vector per row."""
    rng, code = np.random.default_rng(0), None
    p = rng.dirichlet(np.ones(3), 60)
    preds = Predictions([int(rng.choice(3, p=row)) for row in p], p)
    try:
        measure(preds, name, lens="canonical", interval=None)
    except InputError as problem:
        code = problem.code
    assert code in {None, "TO205"}
