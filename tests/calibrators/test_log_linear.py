"""The map softmax(W log p + b), applied, saved and read."""

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions, made
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm.log_linear import clip_logits
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.matrix import StructuredMap
from trueodds.calibrators.vector import VectorMap
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

IDENTITY = {
    "weights": [1.0, 1.0],
    "bias": [0.0, 0.0],
    "min_prob": 1e-12,
    "logits": False,
    "n_passes": 3,
    "converged": True,
}


@pytest.mark.parametrize("weights", [np.ones(4), np.eye(4)])
def test_the_identity_changes_nothing(weights):
    P = draw_predictions(50, 4, 1.0, 0)[0]
    assert VectorMap(weights, np.zeros(4), 1e-12).apply(P) == pytest.approx(P, abs=1e-15)


def test_a_row_that_does_not_quite_sum_to_one_is_divided_by_its_sum():
    P = np.array([[0.6, 0.3, 0.1]])
    for weights in (np.array([0.5, 1.0, 2.0]), np.full((3, 3), 0.2) + np.eye(3)):
        m = VectorMap(weights, np.array([0.1, 0.0, -0.1]), 1e-12)
        assert m.apply(P * 1.00001) == pytest.approx(m.apply(P), abs=1e-12)


def test_a_matrix_that_is_diagonal_is_its_diagonal():
    P = draw_predictions(50, 3, 1.0, 1)[0]
    a, b = np.array([0.5, 1.0, -0.4]), np.array([0.3, 0.0, -0.3])
    one, other = VectorMap(a, b, 1e-12).apply(P), VectorMap(np.diag(a), b, 1e-12).apply(P)
    assert one == pytest.approx(other, abs=1e-14)


def test_only_the_logit_of_an_exact_zero_is_floored():
    z = np.array([[0.0, -200.0, -np.inf], [1.0, 2.0, 3.0]])
    assert clip_logits(z, 1e-3)[0].tolist() == [0.0, -200.0, np.log(1e-3)]
    assert clip_logits(z, 1e-3)[1].tolist() == z[1].tolist()


def test_terms_are_the_map_itself():
    P = draw_predictions(20, 3, 1.0, 2)[0]
    for weights in (np.array([0.5, 1.0, 2.0]), np.full((3, 3), 0.2) + np.eye(3)):
        m = VectorMap(weights, np.array([0.1, 0.0, -0.1]), 1e-12)
        (term,) = m.mixture_terms(3)
        W = term.W if weights.ndim == 2 else np.diag(term.W)
        eta = np.log(P) @ W.T + term.b
        assert (term.weight, term.normalized, term.zeros_only) == (1.0, True, False)
        assert term.min_prob_by_class.tolist() == [1e-12 if weights.ndim == 2 else 0.0] * 3
        assert m.apply(P) == pytest.approx(np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True), abs=1e-14)


def test_what_was_saved_is_read_again():
    m = VectorMap.from_dict(IDENTITY, 2)
    assert (m.n_passes, m.converged, m.logits) == (3, True, False)
    assert m.to_dict() == IDENTITY
    full = VectorMap.from_dict({**IDENTITY, "weights": [[1.0, 0.5], [0.0, 2.0]], "logits": True}, 2)
    assert full.weights.tolist() == [[1.0, 0.5], [0.0, 2.0]]
    assert full.logits


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": [1.0]},
        {"weights": [1.0, None]},
        {"weights": [[1.0, 0.0]]},
        {"weights": [[1.0, 0.0], [1.0]]},
        {"weights": [1.0, float("inf")]},
        {"bias": [0.0, 0.0, 0.0]},
        {"min_prob": 0.0},
        {"min_prob": 1.0},
        {"logits": 1},
        {"n_passes": -1},
        {"converged": "yes"},
        {"more": 1},
    ],
)
def test_a_saved_value_out_of_its_range_is_refused(wrong):
    with pytest.raises(InputError, match="TO505"):
        VectorMap.from_dict({**IDENTITY, **wrong}, 2)


@pytest.mark.parametrize(
    "wrong", [{"beta": 0.0}, {"share": 0.0}, {"share": 2.0}, {"weights": [1.0]}, {"bias": []}, {"converged": 1}]
)
def test_so_is_one_of_a_structured_map(wrong):
    document = StructuredMap(0.5, 0.01, np.ones(2), np.zeros(2)).to_dict()
    assert StructuredMap.from_dict(document, 2).to_dict() == document
    with pytest.raises(InputError, match="TO505"):
        StructuredMap.from_dict({**document, **wrong}, 2)


@pytest.mark.parametrize("name", [name for name in CALIBRATORS.names() if name != "auto"])
def test_a_note_names_a_penalty_only_where_the_calibrator_has_one(name: str) -> None:
    spec = made(name)
    k = 2 if spec.two_classes else 3
    P, _ = draw_predictions(25, k, 1.5, 0)
    for y in (P.argmax(axis=1), (P.argmax(axis=1) + 1) % k):  # separated, and in the reversed order
        texts = [note.text for note in fit(spec, Predictions(y, P)).notes]
        assert hasattr(spec, "penalty") or not any("et a penalty" in text for text in texts)
