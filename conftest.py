"""Leaves out files without doctests, and those that cannot be imported because an optional library is missing."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")  # by default Keras needs TensorFlow, which no test uses

FILES_OF_LIBRARY: dict[str, tuple[str, ...]] = {
    "dask": ("src/trueodds/io/dask.py",),
    "pyspark": ("src/trueodds/io/spark.py",),
    "torch": (
        "src/trueodds/calibrators/torch.py",
        "src/trueodds/integrations/gather_rows.py",
        "src/trueodds/integrations/lightning.py",
        "src/trueodds/io/torch.py",
        "src/trueodds/torch/__init__.py",
        "src/trueodds/torch/losses.py",
        "src/trueodds/torch/read_batches.py",
        "src/trueodds/torch/tally.py",
        "src/trueodds/torch/tensor_sums.py",
    ),
    "torchmetrics": ("src/trueodds/torch/metric.py",),
    "lightning": ("src/trueodds/integrations/lightning.py",),
    "transformers": (),
    "keras": ("src/trueodds/integrations/keras.py",),
    "mlflow": ("src/trueodds/integrations/mlflow.py",),
    "evaluate": ("src/trueodds/integrations/evaluate_metric.py",),
    "lm_eval": ("src/trueodds/integrations/lm_eval.py",),
}

_ROOT = Path(__file__).parent
_IGNORED_FILES = {
    _ROOT / file for name, files in FILES_OF_LIBRARY.items() if find_spec(name) is None for file in files
} | {
    # Pytest would look for doctests in everything that they define or import.
    file
    for folder in ("src", "studies/src")
    for file in (_ROOT / folder).rglob("*.py")
    if b">>>" not in file.read_bytes()
}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out these files; pytest would make a path of each entry of `collect_ignore` for each file that it sees."""
    return True if collection_path in _IGNORED_FILES else None
