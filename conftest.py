"""Which files cannot even be imported here, for want of an optional engine? Their doctests are left out."""

from importlib.util import find_spec

ENGINES = {"dask": "src/trueodds/sources/dask.py", "pyspark": "src/trueodds/sources/spark.py"}

collect_ignore = [file for name, file in ENGINES.items() if find_spec(name) is None]
