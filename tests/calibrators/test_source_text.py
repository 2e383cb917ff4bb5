"""Do SQL, Python source text and graphs of curves give the probabilities of the fitted map?"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import onnx
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator

import trueodds as to
from tests.calibrators.rows import FORMULA_SETTINGS, REQUIRED_SETTINGS, draw_predictions
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.formula import WITH_FORMULA
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

WITHOUT = {"evidential", "group_shift", "irm", "kernel", "multicalibrated", "simplex_histogram"}
CASES: list[tuple[str, int, dict[str, Any]]] = [
    (name, k, REQUIRED_SETTINGS.get(name, {}))
    for name in CALIBRATORS.names()
    if name not in WITHOUT | {"auto"}
    for k in (2, 3)
    if k == 2 or not CALIBRATORS.load(name).two_classes
]
CASES += [
    ("platt", 2, {"on": "raw"}),
    ("isotonic", 2, {"between": "step"}),
    ("histogram", 3, {"partition": "equal-mass"}),
    ("evidential", 2, FORMULA_SETTINGS["evidential"]),
]


def rows(k: int) -> np.ndarray:
    """Drawn rows, and rows with exact zeros."""
    P, _ = draw_predictions(300, k, 1.7, 2)
    zeros = (np.eye(k) + np.eye(k)[::-1][np.r_[1:k, 0]]) / 2
    return np.concatenate([P, np.eye(k), zeros])


def run_sql(calibrator: FittedCalibrator, P: np.ndarray) -> np.ndarray:
    names = [f"score {j}" for j in range(calibrator.k)]
    expressions = calibrator.to_sql(names)
    frame = pd.DataFrame(dict(zip(names, P.T, strict=True)))  # noqa: F841 - DuckDB finds it by its name
    columns = ", ".join(f"{text} AS q{j}" for j, text in enumerate(expressions))
    return duckdb.sql(f"SELECT {columns} FROM frame").df().to_numpy()


@pytest.mark.parametrize(("name", "k", "settings"), CASES)
def test_all_texts_give_the_probabilities_of_the_map(name, k, settings, tmp_path):
    P, y = draw_predictions(400, k, 1.7, 1)
    calibrator = fit(CALIBRATORS.make(name, settings), Predictions(y, P))
    P = rows(k)
    expected = calibrator.predict_proba(P)
    assert run_sql(calibrator, P) == pytest.approx(expected, abs=1e-12)
    module: dict[str, Any] = {}
    exec(calibrator.to_python(), module)
    assert module["recalibrate"](P) == pytest.approx(expected, abs=1e-12)
    calibrator.to_onnx(tmp_path / "map.onnx")
    (graph,) = ReferenceEvaluator(onnx.load(tmp_path / "map.onnx")).run(None, {"probabilities": P})
    assert graph == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["isotonic", "centered_isotonic", "histogram", "spline", "platt"])
def test_curves_fitted_on_log_odds_take_columns_of_probabilities(name):
    P, y = draw_predictions(400, 2, 1.7, 1)
    settings = {"partition": "equal-mass"} if name == "histogram" else {}
    calibrator = fit(CALIBRATORS.make(name, settings), Predictions.from_logits(y, np.log(P)))
    assert run_sql(calibrator, rows(2)) == pytest.approx(calibrator.predict_proba(rows(2)), abs=1e-12)


def test_a_single_column_holds_the_probability_of_the_second_class():
    P, y = draw_predictions(400, 2, 1.7, 1)
    calibrator = to.fit(Predictions(y, P), "beta")
    frame = pd.DataFrame({"p": P[:, 1]})  # noqa: F841
    q = duckdb.sql(f"SELECT {calibrator.to_sql('p')} AS q FROM frame").df()["q"]
    assert q.to_numpy() == pytest.approx(calibrator.predict_proba(P[:, 1])[:, 1], abs=1e-12)


def test_a_map_of_logits_takes_a_column_of_logits():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=400), rng.integers(0, 2, 400)
    calibrator = fit(CALIBRATORS.make("vector", {"logits": True}), Predictions.from_logits(y, z))
    frame = pd.DataFrame({"z": z})  # noqa: F841
    q = duckdb.sql(f"SELECT {calibrator.to_sql('z')} AS q FROM frame").df()["q"]
    assert q.to_numpy() == pytest.approx(calibrator.predict_proba(z, logits=True)[:, 1], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "isotonic"])
def test_the_share_of_the_uniform_distribution_that_auto_adds_is_in_the_text(name):
    P, y = draw_predictions(1500, 3, 2.0, 1)
    calibrator = to.fit(
        Predictions(y, P), "auto", candidates=("temperature", "isotonic") if name == "auto" else (name,)
    )
    assert run_sql(calibrator, rows(3)) == pytest.approx(calibrator.predict_proba(rows(3)), abs=1e-12)
    assert "mixing" in calibrator.to_dict()["parameters"]


def test_quotes_in_names_of_columns_are_doubled():
    calibrator = to.fit(Predictions([0, 0, 1, 1], [0.2, 0.6, 0.4, 0.9]), "shift")
    frame = pd.DataFrame({'a"b': [0.3]})  # noqa: F841
    text = calibrator.to_sql('a"b')
    assert duckdb.sql(f"SELECT {text} FROM frame").df().iloc[0, 0] == pytest.approx(
        calibrator.predict_proba([0.3])[0, 1]
    )


@pytest.mark.parametrize("name", sorted(WITHOUT - {"group_shift", "multicalibrated"}))
def test_a_map_without_a_formula_is_refused_with_the_names_of_those_that_have_one(name):
    P, y = draw_predictions(300, 3, 1.7, 1)
    calibrator = fit(CALIBRATORS.make(name, {}), Predictions(y, P))
    for export in (lambda: calibrator.to_sql(["a", "b", "c"]), calibrator.to_python):
        with pytest.raises(InputError, match=r"TO526.*temperature.*isotonic"):
            export()


def test_the_names_in_the_error_all_have_a_formula():
    P, y = draw_predictions(300, 2, 1.7, 1)
    for name in WITH_FORMULA:
        assert isinstance(fit(CALIBRATORS.make(name, {}), Predictions(y, P)).to_sql("p"), str)


def test_another_number_of_columns_is_refused():
    P, y = draw_predictions(300, 3, 1.7, 1)
    calibrator = to.fit(Predictions(y, P), "temperature")
    for columns in ("p", ["a", "b"]):
        with pytest.raises(InputError, match="TO501"):
            calibrator.to_sql(columns)


@pytest.mark.parametrize("name", ["platt", "isotonic", "venn_abers", "temperature"])
def test_what_is_no_probability_has_no_result(name):
    P, y = draw_predictions(400, 2, 1.7, 1)
    calibrator = to.fit(Predictions(y, P), name)
    values = "(NULL), ('NaN'), ('-0.1'), ('1.5'), ('0.3')"
    query = f"SELECT {calibrator.to_sql('p')} FROM (VALUES {values}) AS t(p)"
    *wrong, (q,) = duckdb.sql(query).fetchall()
    assert wrong == [(None,)] * 4
    assert q == pytest.approx(calibrator.predict_proba([0.3])[0, 1], abs=1e-12)
    module: dict[str, Any] = {}
    exec(calibrator.to_python(), module)
    for row in ([np.nan, 1.0], [-0.1, 1.1], [1.5, 0.0], [0.2, 0.3, 0.5]):
        with pytest.raises(ValueError, match=r"shape \(n, 2\) and contain probabilities"):
            module["recalibrate"]([row])


def test_a_missing_or_infinite_logit_has_no_result():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=400), rng.integers(0, 2, 400)
    calibrator = fit(CALIBRATORS.make("vector", {"logits": True}), Predictions.from_logits(y, z))
    query = f"SELECT {calibrator.to_sql('z')} FROM (VALUES (NULL), ('NaN'), ('-Infinity'), ('0.5')) AS t(z)"
    *wrong, (q,) = duckdb.sql(query).fetchall()
    assert wrong == [(None,)] * 3
    assert q == pytest.approx(calibrator.predict_proba([0.5], logits=True)[0, 1], abs=1e-12)
    module: dict[str, Any] = {}
    exec(calibrator.to_python(), module)
    with pytest.raises(ValueError, match="finite logits"):
        module["recalibrate"]([[np.inf, 0.0]])


@pytest.mark.parametrize("name", ["temperature", "platt", "beta"])
def test_no_exponent_underflows_which_postgresql_refuses(name):
    P, y = draw_predictions(400, 2, 1.7, 1)
    expression = to.fit(Predictions(y, P), name).to_sql("p")
    n_exponents = expression.count("exp(")
    assert expression.count("exp(greatest(least(") == n_exponents > 0
    assert expression.count(", -700.0e0))") == n_exponents
