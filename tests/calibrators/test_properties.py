"""What holds for every member of the table of calibrators."""

import inspect
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import trueodds.calibrators
from tests.calibrators.rows import draw_predictions, made, one_hot
from tests.slow_parameters import law_examples
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.choose import sort_by_complexity
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.uniform_mixture import IdentitySpec
from trueodds.core.errors import InputError
from trueodds.core.registry import dataclass_settings
from trueodds.data.predictions import Predictions

every = pytest.mark.parametrize("name", CALIBRATORS.names())
examples = law_examples()


@st.composite
def decimal_rows(draw, smallest_k=2):
    """Probabilities i/20 that sum to 1, labels, and weights of 1 to 3."""
    k = draw(st.integers(smallest_k, 4))
    n = draw(st.integers(2, 24))
    cuts = draw(st.lists(st.lists(st.integers(0, 20), min_size=k - 1, max_size=k - 1), min_size=n, max_size=n))
    P = np.array([np.diff([0, *sorted(cut), 20]) for cut in cuts]) / 20
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    w = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return P, np.array(y), np.array(w)


def spared(name, property_name, k=2):
    """Whether the member is for other data, or says why the law cannot apply to it."""
    spec_type = CALIBRATORS.load(name)
    return (spec_type.two_classes and k > 2) or property_name in spec_type.exemptions


def probe(k):
    """Rows to compare maps on."""
    return np.random.default_rng(0).dirichlet(np.ones(k), 40)


def applied(name, P, y, w=None):
    k = P.shape[1]
    calibration_map = made(name).fit(P, one_hot(y, k), np.ones(len(P)) if w is None else w.astype(float))
    return calibration_map.apply(np.concatenate([P, probe(k)]))


@every
def test_calibrators_and_maps_are_closed_and_maps_equal_themselves_only(name):
    P = probe(2)
    spec = made(name)
    maps = [spec.fit(P, one_hot(labels, 2), np.ones(len(P))) for labels in (np.arange(40) % 2, np.arange(40) % 3 % 2)]
    if maps[0].to_dict() != maps[1].to_dict():
        assert maps[0] != maps[1]
    for frozen in (spec, maps[0]):
        with pytest.raises(FrozenInstanceError):
            frozen.no_such_setting = 1


@every
@examples
@given(rows=decimal_rows())
def test_row_order_is_irrelevant(name, rows):
    P, y, w = rows
    if spared(name, "row order", P.shape[1]):
        return
    order = np.random.default_rng(len(P)).permutation(len(P))
    k = P.shape[1]
    calibration_maps = [made(name).fit(P[o], one_hot(y[o], k), w[o].astype(float)) for o in (slice(None), order)]
    assert calibration_maps[0].apply(probe(k)) == pytest.approx(calibration_maps[1].apply(probe(k)), abs=1e-9)


@every
@examples
@given(rows=decimal_rows())
def test_a_weight_of_two_is_two_rows(name, rows):
    P, y, w = rows
    if spared(name, "weights", P.shape[1]):
        return
    many = np.repeat(np.arange(len(P)), w)
    one, other = applied(name, P, y, w), applied(name, P[many], y[many])
    assert one[-40:] == pytest.approx(other[-40:], abs=1e-9)


@every
@examples
@given(rows=decimal_rows())
def test_permuting_classes_permutes_results(name, rows):
    P, y, _ = rows
    if spared(name, "class order", P.shape[1]) or (P.shape[1] == 2 and spared(name, "two classes swapped")):
        return
    order = np.random.default_rng(len(P)).permutation(P.shape[1])
    k = P.shape[1]
    fits = [
        made(name).fit(P, one_hot(y, k), np.ones(len(P))),
        made(name).fit(P[:, order], one_hot(y, k)[:, order], np.ones(len(P))),
    ]
    assert fits[0].apply(probe(k))[:, order] == pytest.approx(fits[1].apply(probe(k)[:, order]), abs=1e-9)


@every
@examples
@given(rows=decimal_rows())
def test_rows_are_probabilities_that_sum_to_one(name, rows):
    P, y, w = rows
    if spared(name, "any", P.shape[1]):
        return
    Q = applied(name, P, y, w)
    assert Q.dtype == np.float64
    assert Q.shape == (len(P) + 40, P.shape[1])
    assert (Q >= 0).all()
    assert Q.sum(axis=1) == pytest.approx(1, abs=1e-12)


@every
@examples
@given(rows=decimal_rows())
def test_members_that_say_so_keep_every_label(name, rows):
    P, y, w = rows
    if not CALIBRATORS.load(name).keeps_argmax or spared(name, "any", P.shape[1]):
        return
    assert (applied(name, P, y, w).argmax(axis=1) == np.concatenate([P, probe(P.shape[1])]).argmax(axis=1)).all()


@every
@examples
@given(rows=decimal_rows())
def test_told_and_read_again_it_is_the_same_map(name, rows):
    P, y, w = rows
    if spared(name, "any", P.shape[1]):
        return
    calibrator = fit(made(name), Predictions(y, P, weight=w))
    restored = calibrator_from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    Q = np.concatenate([P, probe(P.shape[1])])
    assert (restored.calibration_map.apply(Q) == calibrator.calibration_map.apply(Q)).all()


@every
def test_exemptions_are_from_laws_there_are(name):
    exempt = CALIBRATORS.load(name).exemptions
    assert set(exempt) <= {"row order", "weights", "class order", "two classes swapped"}
    assert all(len(reason) > 20 for reason in exempt.values())


@every
def test_float32_gives_the_same_fit(name):
    k = 2 if CALIBRATORS.load(name).two_classes else 3
    P, y = draw_predictions(400, k, 1.5, 3)
    narrow = P.astype(np.float32)
    one, other = applied(name, narrow, y), applied(name, narrow.astype(np.float64), y)
    assert one == pytest.approx(other, abs=1e-6)


@every
def test_the_input_is_left_as_it_was(name):
    P, y = draw_predictions(60, 2 if CALIBRATORS.load(name).two_classes else 3, 2.0, 0)
    before = P.copy()
    applied(name, P, y)
    assert (before == P).all()


@every
def test_settings_are_read_back(name):
    spec = made(name)
    assert tuple(spec.settings()) == dataclass_settings(spec)
    P, y = draw_predictions(60, 2, 2.0, 0)
    assert fit(spec, Predictions(y, P)).settings["calibrator"] == name


@every
def test_an_unknown_setting_lists_the_known_ones(name):
    with pytest.raises(InputError, match="TO202"):
        CALIBRATORS.make(name, {"temprature": 1})


@every
def test_the_scikit_learn_estimator_has_the_settings_and_can_be_cloned(name):
    estimator = getattr(trueodds.calibrators, trueodds.calibrators.class_name(name))
    parameters = inspect.signature(estimator).parameters
    own = dataclass_settings(CALIBRATORS.load(name))
    assert tuple(parameters) == (*own, "classes", *(() if "logits" in own else ("logits",)))
    assert clone(estimator(classes=["a", "b"])).get_params()["classes"] == ["a", "b"]
    for field in own:
        assert parameters[field].default == getattr(CALIBRATORS.load(name)(), field)


def test_the_order_of_complexity_is_that_of_the_table_with_others_before_auto():
    @dataclass(frozen=True)
    class Other(IdentitySpec):
        name: ClassVar[str] = "other"

    names = CALIBRATORS.names()
    assert names[0] == "identity"
    assert names[-1] == "auto"
    specs = [Other(), *(CALIBRATORS.load(name)() for name in reversed(names[1:]))]
    assert [spec.name for spec in sort_by_complexity(specs)] == [*names[:-1], "other", "auto"]


@pytest.mark.slow
def test_naming_and_applying_load_no_scikit_learn():
    code = """
import sys
import numpy as np
from tests.calibrators.rows import made
from trueodds.calibrators import CALIBRATORS
CALIBRATORS.names()
assert "scipy" not in sys.modules and "trueodds.calibrators.temperature" not in sys.modules
from trueodds.calibrators.fitting import fit
from trueodds.data.predictions import Predictions
for name in CALIBRATORS.names():
    fit(made(name), Predictions([0, 1, 1], [.2, .7, .6])).predict_proba([.3])
assert "sklearn" not in sys.modules and "scipy.stats" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
