"""A saved calibrator that was tampered with is refused or still maps to probabilities; nothing in it is executed."""

import copy
import json

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions
from tests.slow_parameters import slow_except
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

HOSTILE = [None, True, -1, 0, 10**400, -1e308, 1e308, 2.5, "1", "__import__('os')", [], {}, [[]], [None], {"a": 1}]


def leaves(value, path=()):
    """The place of every entry, of lists only the first and the last."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for i in sorted({0, len(value) - 1}):
            yield from leaves(value[i], (*path, i))


def changed(document, path, value):
    new = copy.deepcopy(document)
    at = new
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return new


def shortened(document, path):
    """Without the entry at the path."""
    new = copy.deepcopy(document)
    at = new
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return new


def harmless(document, P, columns):
    """Refused with a code, or a map whose rows are probabilities."""
    try:
        q = calibrator_from_dict(document).predict_proba(P, **columns)
    except InputError as refused:
        return refused.code.startswith("TO5")
    return np.isfinite(q).all() and (q >= 0).all() and bool(np.abs(q.sum(axis=1) - 1).max() < 1e-9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "name",
    slow_except([name for name in CALIBRATORS.names() if name != "auto"], ["temperature", "isotonic", "dirichlet"]),
)
def test_a_file_that_was_meddled_with_is_refused_or_harmless(name, k):
    if k > 2 and CALIBRATORS.load(name).two_classes:
        return
    P, y = draw_predictions(80, k, 1.5, 0)
    settings = {"priors": tuple(np.arange(1, k + 1) / np.arange(1, k + 1).sum())} if name == "prior_shift" else {}
    site = np.where(np.arange(80) < 40, "a", "b") if CALIBRATORS.load(name).example_columns else None
    settings |= {} if site is None else {"confirm": False}
    preds = Predictions(y, P, group={} if site is None else {"site": site})
    document = json.loads(json.dumps(fit(CALIBRATORS.make(name, settings), preds).to_dict()))
    probe = np.concatenate([P[:20], np.eye(k)])
    columns = {} if site is None else {"group": {"site": site[30 : 50 + k]}}
    for path in leaves(document["parameters"]):
        full_path = ("parameters", *path)
        for value in HOSTILE:
            assert harmless(changed(document, full_path, value), probe, columns), (full_path, value)
        assert harmless(shortened(document, full_path), probe, columns), full_path
