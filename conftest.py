"""Leaves out the doctests of files that cannot be imported because an optional engine is not installed."""

from importlib.util import find_spec

ENGINES = {"dask": "src/trueodds/io/dask.py", "pyspark": "src/trueodds/io/spark.py"}

collect_ignore = [file for name, file in ENGINES.items() if find_spec(name) is None]
