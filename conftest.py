"""Leaves out the doctests of files that cannot be imported because an optional library is not installed."""

import os
from importlib.util import find_spec

os.environ.setdefault("KERAS_BACKEND", "torch")  # by default Keras needs TensorFlow, which no test uses

FILES_OF_LIBRARY: dict[str, tuple[str, ...]] = {
    "dask": ("src/trueodds/io/dask.py",),
    "pyspark": ("src/trueodds/io/spark.py",),
    "torch": ("src/trueodds/integrations/gather_rows.py", "src/trueodds/integrations/lightning.py"),
    "torchmetrics": (),
    "lightning": ("src/trueodds/integrations/lightning.py",),
    "transformers": (),
    "keras": ("src/trueodds/integrations/keras.py",),
}

collect_ignore = [file for name, files in FILES_OF_LIBRARY.items() if find_spec(name) is None for file in files]
