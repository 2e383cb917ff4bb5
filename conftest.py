"""Leaves out the doctests of files that cannot be imported because an optional library is not installed."""

from importlib.util import find_spec

FILES_OF_LIBRARY: dict[str, tuple[str, ...]] = {
    "dask": ("src/trueodds/io/dask.py",),
    "pyspark": ("src/trueodds/io/spark.py",),
    "torch": ("src/trueodds/integrations/gather_rows.py", "src/trueodds/integrations/lightning.py"),
    "torchmetrics": (),
    "lightning": ("src/trueodds/integrations/lightning.py",),
    "transformers": (),
    "keras": (),
}

collect_ignore = [file for name, files in FILES_OF_LIBRARY.items() if find_spec(name) is None for file in files]
