"""How a method is called by its name, for the errors that suggest it."""

from __future__ import annotations

# The families of methods: the function that takes their names, and the registry.
FAMILIES = {
    "estimator": ("measure", "trueodds.estimators:ESTIMATORS"),
    "test": ("test", "trueodds.hypotests:TESTS"),
    "calibrator": ("fit", "trueodds.calibrators:CALIBRATORS"),
    "diagram": ("draw", "trueodds.diagrams:DIAGRAMS"),
}


def call_by_name(method: type, setting: str = "") -> str | None:
    """Return the call that uses a method by its name, or None for a class that is not part of the library.

    >>> from trueodds.estimators.binned import BinnedError
    >>> call_by_name(BinnedError, "bins")
    'to.measure(y_true, y_prob, "ece", bins=…)'
    """
    package, name = method.__module__, getattr(method, "name", None)
    for verb, where in FAMILIES.values():
        if name is not None and package.startswith(where.partition(":")[0] + "."):
            data = '{"a": preds_a, "b": preds_b}' if getattr(method, "several", False) else "y_true, y_prob"
            return f'to.{verb}({data}, "{name}"{f", {setting}=…" if setting else ""})'
    return None
