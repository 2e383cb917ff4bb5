"""Reference pages of the public functions, the classes that users meet, and the modules for other libraries."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from .code_pages import SUFFIX
from .gallery_uses import examples_by_use
from .markdown_tables import write_table
from .method_pages import minigallery, names_by_family, summary_of

# Public name and where it is documented. Classes that `trueodds` itself does not have are named by their module.
CLASSES = {
    "Predictions": "trueodds.Predictions",
    "Estimate": "trueodds.core.results.Estimate",
    "Interval": "trueodds.core.results.Interval",
    "Verdict": "trueodds.core.results.Verdict",
    "Comparison": "trueodds.resampling.comparison.comparison_results.Comparison",
    "Ranking": "trueodds.resampling.comparison.comparison_results.Ranking",
    "ResultTable": "trueodds.api.table_results.ResultTable",
    "MeasureColumn": "trueodds.api.table_columns.MeasureColumn",
    "TableComparison": "trueodds.api.table_columns.TableComparison",
    "SegmentCell": "trueodds.api.table_columns.SegmentCell",
    "VersionDifference": "trueodds.api.table_columns.VersionDifference",
    "Power": "trueodds.hypotests.power_results.Power",
    "ByGroup": "trueodds.hypotests.group_results.ByGroup",
    "FittedCalibrator": "trueodds.calibrators.FittedCalibrator",
    "RecalibratedClassifier": "trueodds.calibrators.RecalibratedClassifier",
    "Audit": "trueodds.reports.audit.Audit",
    "Monitor": "trueodds.Monitor",
    "MonitorReport": "trueodds.monitoring.monitor_report.MonitorReport",
    "Diagram": "trueodds.diagrams.base.Diagram",
    "DiagramGrid": "trueodds.diagrams.grid.DiagramGrid",
    "Source": "trueodds.io.source.Source",
    "Tally": "trueodds.tallies.tally.Tally",
    "View": "trueodds.lenses.view.View",
    "InputError": "trueodds.InputError",
    "Note": "trueodds.Note",
}
INTEGRATIONS = {
    "lightning": "trueodds.integrations.lightning.CalibrationCallback",
    "transformers": "trueodds.integrations.transformers.CalibrationMetrics",
    "keras": "trueodds.integrations.keras.CalibrationCallback",
    "mlflow": "trueodds.integrations.mlflow.CalibrationEvaluator",
    "evaluate": "trueodds.integrations.evaluate_metric.CalibrationErrorMetric",
    "lm_eval": "trueodds.integrations.lm_eval.measure_options",
    "log_to_wandb": "trueodds.integrations.loggers.log_to_wandb",
    "log_to_tensorboard": "trueodds.integrations.loggers.log_to_tensorboard",
    "result_scalars": "trueodds.integrations.loggers.result_scalars",
}
LIBRARIES = {"mlflow": "MLflow", "evaluate": "Hugging Face evaluate", "lm_eval": "lm-evaluation-harness"}
TITLES = {
    "functions": ("Functions", "The functions of `trueodds`, imported as `to`."),
    "metrics": (
        "Metrics",
        "The functions of `trueodds.metrics`, with the arguments of scikit-learn's metrics, return one number.",
    ),
    "classes": ("Classes", "What the functions accept and return."),
    "torch": ("PyTorch", "The names of `trueodds.torch`; the page [PyTorch](../../torch.md) describes their use."),
    "integrations": (
        "Integrations",
        "Callbacks, evaluators and loggers: [PyTorch](../../torch.md), [Other tools](../../how_to/other_tools.md).",
    ),
    "displays": ("Displays", "Display classes in the manner of scikit-learn, one per diagram."),
}


def public_objects(docs: Path) -> dict[str, dict[str, str]]:
    """Map each chapter to its names and their qualified names."""
    library: Any = importlib.import_module("trueodds")
    functions = {name: f"trueodds.{name}" for name in library.__all__ if inspect.isfunction(getattr(library, name))}
    displays = {name: f"trueodds.{name}" for name in library.__all__ if name.endswith("Display")}
    return {
        "functions": functions,
        "metrics": {name: f"trueodds.metrics.{name}" for name in library.metrics.__all__},
        "classes": CLASSES,
        "displays": displays,
        "torch": {name: f"trueodds.torch.{name}" for name in torch_names(docs)},
        "integrations": INTEGRATIONS,
    }


def torch_names(docs: Path) -> list[str]:
    """Return the public names of `trueodds.torch` without importing PyTorch."""
    stub = docs.parent / "src" / "trueodds" / "torch" / "__init__.pyi"
    return re.findall(r"^from \.\w+ import (\w+) as \1$", stub.read_text(encoding="utf-8"), re.MULTILINE)


def load_object(qualified: str) -> Any:
    """Return the object of a qualified name, or None if a library that it needs is missing."""
    module, _, name = qualified.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, ValueError):  # an integration raises an InputError
        return None


def object_page(chapter: str, name: str, qualified: str, examples: list[str]) -> str:
    """Return the reference page of a function or class."""
    obj = load_object(qualified)
    own_name = qualified.rpartition(".")[2]
    is_function = inspect.isfunction(obj) or (obj is None and own_name[:1].islower())
    lines = [f".. autofunction:: {qualified}"] if is_function else [f".. autoclass:: {qualified}", "   :members:"]
    if chapter in ("classes", "torch") and inspect.isclass(obj):
        lines += ["", *(f"   .. automethod:: {method}" for method in inherited_methods(obj))]
    title = f"to.{name}" if chapter == "functions" else name
    if chapter == "integrations" and name != own_name:  # the name of the library
        title = f"{own_name} for {LIBRARIES.get(name, name.capitalize())}"
    body = "\n".join(lines)
    blocks = [f"# {title}", f"```{{eval-rst}}\n{body}\n```"]
    if examples:
        blocks += ["## Examples that use it", minigallery(examples)]
    return "\n\n".join(blocks) + "\n"


def inherited_methods(cls: type) -> list[str]:
    """Return the public methods that a class inherits from other classes of the package, not from PyTorch."""
    own_bases = [base for base in cls.__mro__[1:] if base.__module__.startswith("trueodds.")]
    methods = {name: value for base in own_bases for name, value in vars(base).items() if inspect.isfunction(value)}
    return [name for name in methods if not name.startswith("_") and name not in vars(cls)]


def public_pages(docs: Path) -> dict[str, str]:
    """Map the path of each page, relative to the documentation, to its content."""
    uses = examples_by_use(docs / "examples", names_by_family())
    pages = {}
    for chapter, objects in public_objects(docs).items():
        rows = []
        for name, qualified in objects.items():
            examples = uses.get(("functions", name), [])
            pages[f"reference/{chapter}/{name}{SUFFIX}"] = object_page(chapter, name, qualified, examples)
            rows.append((f"[{name}]({name}{SUFFIX})", summary_of(load_object(qualified)).replace("|", "\\|")))
        title, text = TITLES[chapter]
        table = write_table(("name", "summary"), rows)
        entries = "\n".join(objects)
        pages[f"reference/{chapter}/index{SUFFIX}"] = (
            f"# {title}\n\n{text}\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
        )
    return pages
