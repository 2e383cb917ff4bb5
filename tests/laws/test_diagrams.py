"""Do the laws hold for every diagram of the registry?

Each is drawn through every lens that it supports, with three or four classes. Weights are importance weights: "weight
two is two rows" is tested for the columns that do not depend on the number of rows (`count_columns` names the others).
With frequency weights it holds for every column that is not random (`random_columns` names the others). A law that does
not apply to a diagram is listed in its `exemptions`, with the reason.
"""

import json
from functools import cache

import numpy as np
import pytest

import trueodds as to
from tests.laws.rows import two_shapes
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS, PREDICTION_DIAGRAMS
from trueodds.diagrams.recipe import BinnedRecipe
from trueodds.lenses.view import View

INVARIANCES = ("row order", "weight two", "two shapes", "tally", "class order")
LENSES = [(k, lens) for k in (3, 4) for lens in ("canonical", "confidence", "classwise", "class:1")]
REFUSED = ("TO205", "TO704")  # a lens, or a number of outcomes, that a diagram does not show
NAMED = ("view", "class")  # columns that hold the names of classes
NAMES = PREDICTION_DIAGRAMS
# Log odds of 0 and 1 have a floor. The laws hold for any number of resamples and points of a grid, so few will do.
SETTINGS = {"min_prob": 1e-6, "resamples": 99, "resolution": 21}


def classes(k, n=90, seed=0):
    """Labels, probabilities in twentieths, so that ties and edges occur, and weights 0 to 2."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(20, np.arange(k, 0, -1) / np.arange(k + 1).sum(), n)
    counts = np.where(rng.random((n, 1)) < 0.5, counts, rng.permuted(counts, axis=1))
    P = counts / 20
    y = np.array([rng.choice(k, p=p) for p in P])
    return y, P, rng.integers(0, 3, n).astype(float)


def grouped(rows):
    """The rows with a group column that depends neither on their order nor on that of the classes."""
    certainty = np.where(rows.P.max(axis=1) > 0.6, "sure", "unsure")
    return to.Predictions(rows.y, rows.P, weight=rows.weight, group={"certainty": certainty})


def drawn(name, rows, **settings):
    """A model of its own, named as an epoch is, which other diagrams do not mind."""
    if DIAGRAMS.load(name).needs_groups:
        rows = grouped(rows)
    takes = DIAGRAMS.load(name).setting_names()
    settings = {setting: value for setting, value in SETTINGS.items() if setting in takes} | settings
    return to.draw({"1": rows}, name, **settings)


@cache
def lenses(name):
    """The numbers of classes and lenses that the diagram takes."""
    pairs = []
    for k, lens in LENSES:
        y, P, _ = classes(k)
        try:
            drawn(name, to.Predictions(y, P), lens=lens)
        except InputError as refused:
            assert refused.code in REFUSED  # noqa: PT017 -- another error is a fault
        else:
            pairs.append((k, lens))
    return pairs


def cases(name, invariance):
    """Classes and lenses to try; none where the diagram is exempt."""
    assert lenses(name)
    return [] if invariance in DIAGRAMS.load(name).exemptions else lenses(name)


def numbers(diagram, without=()):
    skipped = (*without, *DIAGRAMS.load(diagram.name).random_columns)
    return {name: column for name, column in diagram.table.items() if name not in skipped}


def assert_same(a, b, case=""):
    assert list(a) == list(b)
    for name, column in a.items():
        if np.asarray(column).dtype.kind == "f":
            np.testing.assert_allclose(column, b[name], rtol=1e-9, atol=1e-12, err_msg=f"{case} {name}")
        else:
            assert list(column) == list(b[name]), (case, name)


@pytest.mark.parametrize("name", NAMES)
def test_an_exemption_names_a_law_and_its_reason(name):
    diagram_class = DIAGRAMS.load(name)
    assert set(diagram_class.exemptions) <= set(INVARIANCES)
    assert all(len(reason.split()) > 3 for reason in diagram_class.exemptions.values())


@pytest.mark.parametrize("name", NAMES)
def test_row_order_is_irrelevant(name):
    for k, lens in cases(name, "row order"):
        y, P, w = classes(k)
        order = np.random.default_rng(1).permutation(len(y))
        a = drawn(name, to.Predictions(y, P, weight=w), lens=lens)
        b = drawn(name, to.Predictions(y[order], P[order], weight=w[order]), lens=lens)
        assert_same(numbers(a), numbers(b), (k, lens))


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_two_is_two_rows(name):
    by_count = DIAGRAMS.load(name).count_columns
    for k, lens in cases(name, "weight two"):
        y, P, w = classes(k)
        times = w.astype(int)
        weighted = drawn(name, to.Predictions(y, P, weight=w), lens=lens)
        rows = drawn(name, to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), lens=lens)
        assert_same(numbers(weighted, by_count), numbers(rows, by_count), (k, lens))


@pytest.mark.parametrize("name", NAMES)
def test_a_frequency_of_two_is_two_rows(name):
    for k, lens in lenses(name):
        y, P, w = classes(k)
        times = w.astype(int)
        counted = drawn(name, to.Predictions(y, P, weight=w), lens=lens, weight_kind="frequency")
        rows = drawn(name, to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), lens=lens)
        assert_same(numbers(counted), numbers(rows), (k, lens))


@pytest.mark.parametrize("name", NAMES)
def test_binary_is_two_class(name):
    def draw_numbers(rows):
        try:
            return numbers(drawn(name, rows))
        except InputError as refused:
            assert refused.code in REFUSED  # noqa: PT017 -- another error is a fault
            return {"code": np.array([refused.code])}

    one, two = map(draw_numbers, two_shapes())
    assert_same(one, two)


@pytest.mark.parametrize("name", NAMES)
def test_a_tally_draws_what_the_rows_draw(name):
    diagram_class = DIAGRAMS.load(name)
    for k, lens in cases(name, "tally"):
        if lens == "canonical":  # vectors are tallied on a grid of their own
            continue
        y, P, _ = classes(k, n=400)
        preds = to.Predictions(y, P)
        exact, tallied = drawn(name, preds, lens=lens), drawn(name, to.tally(preds), lens=lens)
        assert_same(
            numbers(exact, diagram_class.count_columns), numbers(tallied, diagram_class.count_columns), (k, lens)
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_strict_json_and_settings_are_read_back(name):
    takes = DIAGRAMS.load(name).setting_names()
    options = {key: value for key, value in {"bins": 4, "level": 0.8}.items() if key in takes}
    for k, lens in lenses(name):
        y, P, w = classes(k)
        preds = to.Predictions(y, P, weight=w)
        # A vector has no four bins: there the partition is the tree.
        settings = {key: value for key, value in options.items() if key != "bins" or lens != "canonical"}
        diagram = drawn(name, preds, lens=lens, **settings)
        document = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
        assert document == json.loads(json.dumps(drawn(name, preds, lens=lens, **settings).to_dict()))
        if "level" in settings:
            assert 0.8 in (document["settings"].get("level"), *document["settings"].get("levels", ()))
        if "bins" in settings:
            assert "4" in f"{document['settings'].get('partition')} {document['settings'].get('bins')}"


@pytest.mark.parametrize("name", NAMES)
def test_permuting_classes_permutes_the_views(name):
    diagram_class = DIAGRAMS.load(name)
    if "class order" in diagram_class.exemptions or (3, "classwise") not in lenses(name):
        assert diagram_class.exemptions or diagram_class.accepts_joint_views
        return
    y, P, _ = classes(3)
    order = np.array([2, 0, 1])
    first, second = (
        drawn(name, to.Predictions(*pair), lens="classwise") for pair in ((y, P), (np.argsort(order)[y], P[:, order]))
    )
    if issubclass(diagram_class, BinnedRecipe):
        assert {"n", "mean_prediction", "outcome_rate"} <= set(first.table)
    for new, old in enumerate(order):
        a, b = (
            {
                column: values[diagram.table["view"] == f"class:{c}"]
                for column, values in numbers(diagram, NAMED).items()
            }
            for diagram, c in ((first, old), (second, new))
        )
        assert len(next(iter(a.values())))
        assert_same(a, b, f"class {old}")


@pytest.mark.parametrize("name", [name for name in NAMES if not DIAGRAMS.load(name).accepts_joint_views])
def test_a_vector_per_row_is_refused_with_the_lenses_that_fit(name):
    joint = View(np.full((4, 3), 1 / 3), np.eye(3)[[0, 1, 2, 0]], name="canonical")
    with pytest.raises(InputError, match=r"TO205.*classwise") as refused:
        DIAGRAMS.make(name, {})([joint])
    assert "simplex" not in str(refused.value)


def test_no_law_is_left_to_no_member():
    """Every law is kept by at least one diagram."""
    for invariance in INVARIANCES:
        assert any(cases(name, invariance) for name in NAMES)
