"""Predict probabilities with a fitted scikit-learn classifier, or raise an error with what to do instead."""

from __future__ import annotations

from typing import Any

from trueodds.core.errors import InputError, describe


def predict_probabilities(model: Any, X: Any) -> Any:
    """Return the probabilities that a fitted scikit-learn classifier predicts; raise TO117 if it cannot."""
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        return model.predict_proba(X)
    raise _no_probabilities_error(model)


def _no_probabilities_error(model: Any) -> InputError:
    name = type(model).__name__
    if hasattr(model, "decision_function") and not hasattr(model, "predict_proba"):
        problem = f"{name} has a decision_function, but no predict_proba."
        fix = (
            "Recalibrate it: RecalibratedClassifier(model). Predictions.from_logits(y, model.decision_function(X))"
            " reads its scores as logits."
        )
        return InputError("TO117", problem, describe(model), fix)
    if hasattr(model, "predict_proba"):
        return InputError("TO117", f"The {name} is not fitted: it has no classes_.", describe(model), "Fit it first.")
    problem = "The model must be a fitted classifier with predict_proba and classes_."
    return InputError("TO117", problem, name, "Pass its probabilities to Predictions(y_true, y_prob).")
