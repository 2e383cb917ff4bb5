"""How a method is called by its name: the lines that its docstring begins with, and the call that errors suggest."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

# By kind of method: the function that takes its name, and where its registry is ("module:CONSTANT").
METHOD_FAMILIES = {
    "estimator": ("measure", "trueodds.estimators:ESTIMATORS"),
    "test": ("test", "trueodds.hypotests:TESTS"),
    "calibrator": ("fit", "trueodds.calibrators:CALIBRATORS"),
    "diagram": ("draw", "trueodds.diagrams:DIAGRAMS"),
}

MAX_LISTED_SETTINGS = 12  # settings that a docstring lists


def call_by_name(method: type, setting: str = "") -> str | None:
    """Return the call that uses a method by its name, or None for a class that is not part of the library.

    >>> from trueodds.estimators.binned import BinnedError
    >>> call_by_name(BinnedError, "bins")
    'to.measure(y_true, y_prob, "ece", bins=…)'
    """
    package, name = method.__module__, getattr(method, "name", None)
    for function_name, location in METHOD_FAMILIES.values():
        if name is not None and package.startswith(location.partition(":")[0] + "."):
            data = (
                '{"a": preds_a, "b": preds_b}' if getattr(method, "accepts_several_models", False) else "y_true, y_prob"
            )
            return f'to.{function_name}({data}, "{name}"{f", {setting}=…" if setting else ""})'
    return None


def add_use_to_docstring(docstring: str, call: str, settings: Sequence[str]) -> str:
    """Return the docstring of a method with a paragraph on its use by name after the summary.

    >>> print(add_use_to_docstring("Summary.", 'to.measure(y_true, y_prob, "ece")', ["bins", "order"]))
    Summary.
    <BLANKLINE>
        Use: ``to.measure(y_true, y_prob, "ece")``. Settings by name: `bins`, `order`.
    """
    summary, blank, body = docstring.partition("\n\n")
    setting_texts = [f"`{name}`" for name in settings[:MAX_LISTED_SETTINGS]] + (
        ["…"] if len(settings) > MAX_LISTED_SETTINGS else []
    )
    settings_sentence = f" Settings by name: {', '.join(setting_texts)}." if settings else ""
    lines = textwrap.wrap(f"Use: ``{call}``.{settings_sentence}", 100, break_long_words=False, break_on_hyphens=False)
    return f"{summary}\n\n{textwrap.indent(chr(10).join(lines), '    ')}{blank}{body}"
