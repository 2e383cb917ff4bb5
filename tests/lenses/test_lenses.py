"""Does each lens look at the claim it is named for?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds import InputError, Predictions
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.classes import Class, Groups, class_number
from trueodds.lenses.lens_by_name import as_lens, default_lens
from trueodds.lenses.ranked import accuracy, has_wrong_prediction, predicted_class

# Vaicenavicius et al. (2019), Table 1: each row of g occurs equally often, r is how often each class then comes.
G = [[0.1, 0.3, 0.6], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6], [0.3, 0.6, 0.1], [0.6, 0.1, 0.3], [0.6, 0.3, 0.1]]
R = [[0.2, 0.2, 0.6], [0.0, 0.7, 0.3], [0.2, 0.2, 0.6], [0.4, 0.5, 0.1], [0.7, 0.0, 0.3], [0.5, 0.4, 0.1]]
BLIND = [
    "confidence",
    "top-1",
    "top-2",
    "rank:1",
    "rank:2",
    "rank:3",
    "class:0",
    "class:1",
    "class:2",
    "classwise",
    "groups:[[0],[1,2]]",
    "groups:[[0,1],[2]]",
    "groups:[[0,2],[1]]",
]


def table1() -> Predictions:
    """Table 1 as 60 rows: 10 r rows of each class for each vector."""
    y = [c for r in R for c in range(3) for _ in range(round(10 * r[c]))]
    return Predictions(y, np.repeat(G, 10, axis=0))


def error(preds: Predictions, lens: Any, **settings: Any) -> float:
    """The largest error over the views of a lens, every distinct decimal in a cell of its own."""
    partition = settings.pop("partition", Uniform(20))
    return max(float(BinnedError(partition, **settings)(view)) for view in as_lens(lens).views(preds))


# Table 1


def test_table_1_is_seen_by_the_canonical_lens_alone() -> None:
    # By hand: each row of R differs from G by .1 in two places, so TV = .1 in every cell.
    assert error(table1(), "canonical") == pytest.approx(0.1, abs=1e-15)
    for lens in BLIND:
        assert error(table1(), lens) <= 1e-15, lens


@pytest.mark.parametrize(
    ("distance", "key"),
    [("tv", "tv"), ("l1", "l1"), ("l2", "l2"), ("sq-euclidean", "sq_euclid"), ("max", "max"), ("kl", "kl_r_to_g")],
)
def test_table_1_in_every_distance(distance: str, key: str) -> None:
    # Reference: shared golden estimators, key a1.population_canonical.*
    truth = reference.estimators()[f"a1.population_canonical.{key}"]["value"]
    assert error(table1(), "canonical", distance=distance) == pytest.approx(truth, rel=1e-12)


def test_the_60_rows_of_the_reference_are_table_1() -> None:
    rows = reference.frame("estimators/a1_table1_60.csv")
    preds = Predictions(rows["y"], reference.columns(rows))
    truth = reference.estimators()
    assert error(preds, "canonical") == pytest.approx(truth["a1.empirical60_canonical_discrete.tv"]["value"], rel=1e-12)
    assert error(preds, "canonical", distance="sq-euclidean") == pytest.approx(
        truth["a1.empirical60_canonical_discrete.sq_euclid"]["value"], rel=1e-12
    )
    assert max(error(preds, lens) for lens in BLIND) <= 1e-15


# What each lens says and sees, by hand

ROWS = Predictions([0, 2, 1], [[0.5, 0.2, 0.3], [0.1, 0.3, 0.6], [0.4, 0.2, 0.4]])


@pytest.mark.parametrize(
    ("lens", "p", "y"),
    [
        ("confidence", [0.5, 0.6, 0.4], [1, 1, 0]),
        ("top-1", [0.5, 0.6, 0.4], [1, 1, 0]),
        ("rank:1", [0.5, 0.6, 0.4], [1, 1, 0]),
        ("rank:2", [0.3, 0.3, 0.4], [0, 0, 0]),
        ("rank:3", [0.2, 0.1, 0.2], [0, 0, 1]),
        ("class:2", [0.3, 0.6, 0.4], [0, 1, 0]),
        ("groups:[[0,1],[2]]", [0.3, 0.6, 0.4], [0, 1, 0]),
        ("groups:[[2],[0,1]]", [0.7, 0.4, 0.6], [1, 0, 1]),
    ],
)
def test_a_binary_lens_by_hand(lens: str, p: list[float], y: list[float]) -> None:
    (view,) = as_lens(lens).views(ROWS)
    assert not view.joint
    assert view.p == pytest.approx(p, abs=1e-15)
    assert view.y.tolist() == y


def test_a_joint_lens_by_hand() -> None:
    (top,) = as_lens("top-2").views(ROWS)
    assert top.p == pytest.approx(np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]]), abs=1e-15)
    assert top.y.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    (three,) = as_lens("groups:[[2],[0],[1]]").views(ROWS)
    assert three.p.tolist() == ROWS.p[:, [2, 0, 1]].tolist()
    assert three.y.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    (canonical,) = as_lens("canonical").views(ROWS)
    assert canonical.y.tolist() == np.eye(3)[[0, 2, 1]].tolist()


def test_tied_maxima_go_to_the_lowest_class_and_are_noted() -> None:
    assert predicted_class(ROWS).tolist() == [0, 2, 0]
    assert predicted_class(Predictions([0], [0.5])).tolist() == [0]
    (note,) = as_lens("confidence").notes(ROWS)
    assert note.code == "TN103"
    assert note.text.startswith("1 row has")
    assert as_lens("confidence").notes(Predictions([0], [0.7])) == []


def test_votes_are_shares_of_each_outcome() -> None:
    preds = Predictions([[7, 2, 1], [0, 5, 5]], [[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]])
    assert as_lens("confidence").views(preds)[0].y == pytest.approx([0.7, 0.5])
    assert as_lens("rank:3").views(preds)[0].y == pytest.approx([0.2, 0.0])
    assert as_lens("top-2").views(preds)[0].y == pytest.approx(np.array([[0.7, 0.1, 0.2], [0.5, 0.5, 0]]))
    assert as_lens("groups:[[0,1],[2]]").views(preds)[0].y == pytest.approx([0.1, 0.5])


def test_one_hot_votes_are_hard_labels_through_every_lens() -> None:
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 30)
    y = np.arange(30) % 3
    hard, voted = Predictions(y, P), Predictions(np.eye(3)[y], P)
    for lens in ["canonical", *BLIND]:
        for a, b in zip(as_lens(lens).views(hard), as_lens(lens).views(voted), strict=True):
            assert np.array_equal(a.y, b.y), lens


@pytest.mark.parametrize("lens", ["canonical", *BLIND])
def test_drawn_labels_and_votes_have_the_outcomes_of_observed_labels(lens: str) -> None:
    labels = np.tile(np.arange(3, dtype=np.int8), (3, 1))  # (rows, draws)
    for view, codes in zip(as_lens(lens).views(ROWS), as_lens(lens).outcome_codes(ROWS), strict=True):
        m = view.p.shape[1] if view.joint else 1
        numbers = codes.outcome_numbers(labels)
        assert numbers.dtype == np.int8
        for c in range(3):
            outcomes = codes.outcomes_of_labels(labels[:, c], m)
            assert np.array_equal(outcomes, numbers[:, c, None] == np.arange(m) if view.joint else numbers[:, c] == 1)
            assert np.array_equal(outcomes, codes.outcome_shares(np.eye(3)[labels[:, c]], m))


def test_two_classes_give_the_same_views_in_either_shape() -> None:
    # netcal: K = 2 becomes another quantity than K > 2, and does not say so
    p = np.array([0.0, 0.2, 0.5, 0.7, 1.0, 1 / 3])
    one, two = Predictions([0, 1, 0, 1, 1, 0], p), Predictions([0, 1, 0, 1, 1, 0], np.stack([1 - p, p], axis=1))
    lenses = ["canonical", "positive", "confidence", "classwise", "class:0", "class:1", "rank:2", "groups:[[0],[1]]"]
    for lens in lenses:
        for a, b in zip(as_lens(lens).views(one), as_lens(lens).views(two), strict=True):
            assert (a.name, a.joint, a.p.tolist(), a.y.tolist()) == (b.name, b.joint, b.p.tolist(), b.y.tolist()), lens
    assert str(default_lens(one)) == str(default_lens(two)) == "positive"


def test_the_default_lens_follows_the_kind_of_data() -> None:
    assert str(default_lens(ROWS)) == "confidence"
    assert str(default_lens(Predictions.from_confidence([0.5], [1]))) == "confidence"
    assert str(default_lens(Predictions.from_multilabel([[0, 1]], [[0.5, 0.6]]))) == "classwise"


def test_multilabel_looks_at_each_label_for_itself() -> None:
    preds = Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.9], [0.6, 0.7]], classes=["a", "b"])
    views = as_lens("classwise").views(preds)
    assert [(v.name, v.p.tolist(), v.y.tolist(), v.classes) for v in views] == [
        ("class:a", [0.2, 0.6], [0, 1], 2),
        ("class:b", [0.9, 0.7], [1, 1], 2),
    ]
    assert as_lens("class:b").views(preds)[0].p.tolist() == [0.9, 0.7]


def test_accuracy_is_weighted() -> None:
    # Right in rows 0 and 1 of 3; by weight (1 + 2)/4.
    assert accuracy(ROWS) == pytest.approx(2 / 3)
    assert accuracy(Predictions([0, 2, 1], ROWS.p, weight=[1, 2, 1])) == 0.75
    assert accuracy(Predictions.from_confidence([0.3, 0.9], [1, 0], weight=[3, 1])) == 0.75


@pytest.mark.parametrize(
    ("preds", "is_wrong"),
    [
        (Predictions([0, 1], [0.5, 0.9]), False),  # of equal probabilities the first class is predicted
        (Predictions([1, 1], [0.5, 0.9]), True),
        (Predictions([1, 1], [0.5, 0.9], weight=[0, 1]), False),
        (Predictions([0, 2, 0], ROWS.p), False),
        (ROWS, True),
        (Predictions([[9, 1, 0]], ROWS.p[:1]), True),  # votes
        (Predictions.from_confidence([0.3, 0.9], [1, 1]), False),
        (Predictions.from_confidence([0.3, 0.9], [1, 0]), True),
        (Predictions.from_multilabel([[0, 1], [0, 0]], [[0.2, 0.9], [0.5, 0.1]]), False),
        (Predictions.from_multilabel([[0, 1], [0, 1]], [[0.2, 0.9], [0.5, 0.1]]), True),
    ],
)
def test_a_prediction_is_wrong_if_another_class_was_observed(preds: Predictions, is_wrong: bool) -> None:
    assert has_wrong_prediction(preds) is is_wrong


def test_a_row_of_weight_zero_is_no_row() -> None:
    (view,) = as_lens("positive").views(Predictions([0, 1, 1], [0.2, 0.3, 0.4], weight=[1, 0, 2]))
    assert view.n.tolist() == [1, 0, 1]
    assert view.n_rows == 2


# Names of classes


def test_classes_and_groups_go_by_name() -> None:
    preds = Predictions([0, 2, 1], ROWS.p, classes=["cat", "dog", "owl"])
    assert as_lens("class:owl").views(preds)[0].p.tolist() == ROWS.p[:, 2].tolist()
    assert as_lens("class:2").views(preds)[0].name == "class:owl"
    named, numbered = as_lens('groups:[["cat","dog"],["owl"]]'), as_lens("groups:[[0,1],[2]]")
    assert named.views(preds)[0].p.tolist() == numbered.views(preds)[0].p.tolist()
    with refused("TO204", "'dgo'", fix="dog"):
        as_lens("class:dgo").views(preds)


def test_a_class_name_that_looks_like_a_number_is_a_name() -> None:
    # "class:1" must not mean the name 1 here and "class:0" the column 0 there: with number names only names count.
    assert [class_number(name, (3, 5, 7)) for name in (3, "5", 7)] == [0, 1, 2]
    assert [class_number(name, ("2", "1", "0")) for name in (0, "1", 2)] == [2, 1, 0]
    assert class_number(1, (1, 2, 3)) == 0
    for names in ((1, 2, 3), ("1", "2", "3")):
        with refused("TO204", "0"):
            class_number(0, names)
    assert class_number(np.int64(1), ("a", "b")) == 1


@pytest.mark.parametrize("which", [-1, 3, "-1", "3", "1.0", "", "²"])
def test_a_class_that_is_none_is_refused(which: Any) -> None:
    with refused("TO204", repr(which)):
        Class(which).views(ROWS)


# What has no meaning is refused


@pytest.mark.parametrize(
    "lens",
    [
        "confidnce",
        "top-0",
        "top-3",
        "rank:0",
        "rank:4",
        "class:9",
        "positive",
        "groups:[[0,1]]",
        "groups:[[0],[1]]",
        "groups:[[0,1],[1,2]]",
        "groups:[[0,1,2],[]]",
        "groups:[0,1,2]",
        'groups:[[0,1],"c"]',
        "groups:oops",
        "",
        None,
        3,
        ["confidence"],
    ],
)
def test_lenses_without_meaning_are_refused(lens: Any) -> None:
    with refused("TO204"):
        as_lens(lens).views(ROWS)


@pytest.mark.parametrize(
    "lens", ["groups:" + "[" * 30_000, f"groups:[[{'9' * 5_000}],[0]]", "top-" + "9" * 5_000, "rank:" + "9" * 5_000]
)
def test_lists_too_deep_and_numbers_too_long_are_no_lens(lens: str) -> None:
    with pytest.raises(InputError, match="TO204") as refusal:
        as_lens(lens)
    assert len(refusal.value.got) <= 80


def test_a_misspelt_lens_gets_the_near_ones() -> None:
    with refused("TO204", fix="confidence"):
        as_lens("confidnce")


@pytest.mark.parametrize("lens", ["canonical", "positive", "classwise", "class:1", "rank:1", "groups:[[0],[1]]"])
def test_bare_confidence_has_one_lens(lens: str) -> None:
    with refused("TO204", fix="confidence"):
        as_lens(lens).views(Predictions.from_confidence([0.9, 0.6], [1, 0]))


@pytest.mark.parametrize("lens", ["canonical", "positive", "confidence", "top-1", "rank:1", "groups:[[0],[1]]"])
def test_independent_labels_are_not_compared(lens: str) -> None:
    with refused("TO204", fix="classwise"):
        as_lens(lens).views(Predictions.from_multilabel([[0, 1]], [[0.5, 0.6]]))


# A user's own ψ


def psi_confidence(Y: Array, P: Array) -> tuple[Array, Array]:
    top = np.argmax(P, axis=1)
    rows = np.arange(len(P))
    p, z = P[rows, top], Y[rows, top]
    return np.stack([1 - p, p], axis=1), np.stack([1 - z, z], axis=1)


def psi_blocks(Y: Array, P: Array) -> tuple[Array, Array]:
    blocks = [[0], [1, 3], [2]]
    return tuple(np.stack([X[:, b].sum(axis=1) for b in blocks], axis=1) for X in (P, Y))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("psi", "lens"), [(psi_confidence, "confidence"), (psi_blocks, "groups:[[0],[1,3],[2]]")], ids=["binary", "joint"]
)
@pytest.mark.parametrize("kind", ["hard", "votes"])
def test_a_psi_equals_the_lens_that_it_imitates_bit_for_bit(psi: Any, lens: str, kind: str) -> None:
    rng = np.random.default_rng(3)
    P = rng.integers(1, 20, (200, 4)).astype(float)
    P /= P.sum(axis=1, keepdims=True)
    y = rng.integers(0, 4, 200) if kind == "hard" else rng.multinomial(5, [0.25] * 4, 200)
    preds = Predictions(y, P, weight=rng.random(200))
    (own,), (built,) = as_lens(psi).views(preds), as_lens(lens).views(preds)
    assert np.array_equal(own.p, built.p)
    assert np.array_equal(own.y, built.y)
    for partition in (Uniform(7), MedianVariance(20)):
        assert float(BinnedError(partition)(own)) == float(BinnedError(partition)(built))
    assert own.name == psi.__name__


def test_a_psi_may_return_ints() -> None:
    def psi(Y: Array, P: Array) -> tuple[Array, Array]:
        confident = (P > 0.5).astype(int)
        return np.stack([1 - confident[:, 2], confident[:, 2]], 1), np.stack([1 - Y[:, 2], Y[:, 2]], 1).astype(int)

    (view,) = as_lens(psi).views(ROWS)
    assert (view.p.tolist(), view.y.tolist()) == ([0, 1, 0], [0, 1, 0])


def test_a_psi_of_values_above_one_by_rounding_is_accepted() -> None:
    preds = Predictions([0, 1], [[1 + 2**-52, 0.0], [0.5, 0.5]])
    assert as_lens(psi_confidence).views(preds)[0].p.tolist() == [1 + 2**-52, 0.5]


@pytest.mark.parametrize(
    "psi",
    [
        lambda Y, P: P,
        lambda Y, P: (P[:, 0], Y[:, 0]),
        lambda Y, P: (P[:, :1], Y[:, :1]),
        lambda Y, P: (P[:1], Y[:1]),
        lambda Y, P: (P[:, :2], Y[:, :2]),
        lambda Y, P: (P - 1, Y),
        lambda Y, P: (P * np.nan, Y),
        lambda Y, P: (P, Y * 0.5),
        lambda Y, P: (P, Y[:, :2]),
        lambda Y, P: (P, np.ones_like(Y)),
        lambda Y, P: 5,
        lambda Y: Y,
    ],
)
def test_a_psi_that_is_no_induced_problem_is_refused(psi: Any) -> None:
    with refused("TO204"):
        as_lens(psi).views(ROWS)


# Real nets through the three groups of the paper's figure 1


@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "resnet18"])
def test_the_groups_of_figure_1_on_real_nets(net: str) -> None:
    # Reference: golden anchors, analytic_and_literal.cifar_lenses (an independent NumPy program), from the decimal
    # text of which these float32 values are off by up to half an ulp below 1, 2^-25 = 3e-8.
    truth = reference.golden("anchors/golden.json")["analytic_and_literal"]["cifar_lenses"][net]
    arrays = reference.data("widmann_cifar10_4nets.npz")
    preds = Predictions(arrays["labels"], arrays[f"probs_{net}"])
    (view,) = Groups(((0, 1, 2), (3, 4, 5), (6, 7, 8, 9))).views(preds)
    tree = BinnedError(MedianVariance(100))
    assert float(tree(view)) == pytest.approx(truth["fig1_groups_medvar100_tv"], abs=2**-25)
    assert tree.bin_sums(view).size == truth["fig1_groups_medvar100_bins"]
    assert float(BinnedError(SimplexGrid(5))(view)) == pytest.approx(truth["fig1_groups_tv_k5"], abs=2**-25)
    assert accuracy(preds) == pytest.approx(truth["accuracy"], abs=1e-12)


def test_every_pair_of_blocks_is_the_sum_of_its_classes() -> None:
    rng = np.random.default_rng(5)
    preds = Predictions(rng.integers(0, 4, 50), rng.dirichlet([1] * 4, 50))
    for size in (1, 2, 3):
        for block in itertools.combinations(range(4), size):
            rest = tuple(c for c in range(4) if c not in block)
            (view,) = Groups((rest, block)).views(preds)
            assert view.p == pytest.approx(preds.p[:, block].sum(axis=1), abs=1e-15)
            assert np.array_equal(view.y, np.isin(preds.y, block))
