"""Entries of the index: the names under which readers look for a page, which the search of the site ranks first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .method_pages import FAMILIES, summary_of

MAX_WORDS = 4  # of a name that begins the summary of a method
# Names that neither the title of a page nor the summary of a method states.
NAMES = {
    "how_to/clinical_validation": (
        "calibration slope", "calibration intercept", "weak calibration", "moderate calibration", "external validation",
        "TRIPOD", "clinical prediction model",
    ),
    "how_to/databases": ("SQL", "DuckDB", "PostgreSQL"),
    "how_to/fairness_by_groups": ("fairness", "subgroup"),
    "how_to/forecasts": ("quantile forecast", "prediction interval", "regression"),
    "how_to/gate_in_ci": ("ECE gate", "calibration gate", "CI gate", "GitHub Actions", "test suite"),
    "how_to/installing_offline": ("offline installation", "air-gapped", "wheelhouse", "hashes"),
    "how_to/judges_and_few_labels": ("LLM judge", "prediction-powered inference", "PPI", "Rogan-Gladen"),
    "how_to/language_models": ("LLM", "verbalized confidence", "language model"),
    "how_to/monitor_a_model": ("monitoring", "drift"),
    "how_to/other_tools": ("MLflow", "Weights & Biases", "TensorBoard", "lm-evaluation-harness", "skore", "Evidently"),
    "how_to/paper_table": ("table for a paper", "LaTeX table"),
    "how_to/rows_on_a_cluster": ("Spark", "Dask"),
    "how_to/scikit_learn": (
        "scikit-learn", "sklearn", "Pipeline", "GridSearchCV", "cross-validation", "cross_val_predict", "joblib",
        "CalibratedClassifierCV", "make_scorer",
    ),
    "how_to/serve_a_calibrator": ("deployment", "ONNX", "save a calibrator", "load a calibrator"),
    "answers": ("LLM", "language model"),
    "calibrators": ("recalibration", "post-hoc calibration"),
    "cli": ("exit status", "exit code", "command line"),
    "compatibility": ("versions",),
    "diagrams": ("reliability diagram", "calibration curve"),
    "engines": ("Spark", "Dask"),
    "estimators": ("calibration error", "proper score", "scoring rule"),
    "evidence": ("self-test", "selftest", "validation of the software", "traceability"),
    "gallery": ("gallery", "pictures of all diagrams"),
    "groups": ("subgroup", "forest plot"),
    "guide": ("noise floor", "lens", "partition", "region"),
    "json": ("JSON schema",),
    "people": ("annotator disagreement", "soft labels", "crowdsourcing"),
    "pixels": ("segmentation", "pixels"),
    "tables": ("LaTeX table",),
    "tests": ("p-value", "null distribution"),
    "torch": ("PyTorch", "Lightning", "Transformers", "Keras", "callback"),
    "reference/functions/power": ("sample size", "power analysis"),
    "reference/functions/scorer": ("make_scorer", "scoring"),
    "reference/classes/RecalibratedClassifier": ("CalibratedClassifierCV",),
    "reference/classes/Monitor": ("monitoring", "drift", "late labels", "e-value"),
    "reference/tests/hosmer_lemeshow": ("Hosmer-Lemeshow test",),
    "reference/tests/cox": ("calibration slope", "calibration intercept", "Cox test"),
    "reference/calibrators/temperature": ("temperature scaling",),
    "reference/diagrams/decision_curve": ("decision curve analysis", "clinical usefulness"),
}  # fmt: skip


def names_of_method(name: str, noun: str, summary: str) -> list[str]:
    """Return the names of a method: its own in words, and those with which its summary begins.

    >>> names_of_method("hosmer_lemeshow", "test", "Hosmer-Lemeshow test of counts in groups.")
    ['hosmer lemeshow', 'hosmer lemeshow test']
    >>> names_of_method("ks", "estimator", "Kolmogorov–Smirnov calibration error (KS error, KS), a distance.")
    ['ks', 'ks estimator', 'Kolmogorov–Smirnov calibration error', 'Kolmogorov Smirnov calibration error', 'KS error']
    """
    words = name.replace("_", " ")
    names = [words, f"{words} {noun}"]
    beginning = re.match(r"([^:(.,]+?)(?: \(([^)]+)\))?[:,.(]", summary)
    if beginning and len(beginning[1].split()) <= MAX_WORDS:
        names += [beginning[1], *(beginning[2] or "").split(", ")]
    spellings: dict[str, str] = {}
    for each in names:
        for spelling in (each, re.sub(r"[-–]", " ", each)):
            spellings.setdefault(spelling.lower(), spelling)
    return [spelling for spelling in spellings.values() if spelling]


def index_entries() -> dict[str, list[str]]:
    """Map each document to the entries that lead to it."""
    entries = {page: list(names) for page, names in NAMES.items()}
    for page, names in _entries_of_methods():
        entries[page] = [*entries.get(page, []), *names]
    return entries


def _entries_of_methods() -> Iterator[tuple[str, list[str]]]:
    for family in FAMILIES:
        for name in family.names():
            summary = summary_of(family.public_class(name))
            yield f"reference/{family.name}/{name}", names_of_method(name, family.noun, summary)
