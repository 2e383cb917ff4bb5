"""Leaves out the doctests of files that cannot be imported because an optional library is not installed."""

from importlib.util import find_spec

FILES_OF_LIBRARY: dict[str, tuple[str, ...]] = {
    "dask": ("src/trueodds/io/dask.py",),
    "pyspark": ("src/trueodds/io/spark.py",),
    "torch": (
        "src/trueodds/io/torch.py",
        "src/trueodds/torch/__init__.py",
        "src/trueodds/torch/device_sums.py",
        "src/trueodds/torch/read_batches.py",
        "src/trueodds/torch/tally.py",
        "src/trueodds/torch/tensor_layout.py",
        "src/trueodds/torch/tensor_sums.py",
    ),
    "torchmetrics": ("src/trueodds/torch/metric.py",),
    "lightning": (),
    "transformers": (),
    "keras": (),
}

collect_ignore = [file for name, files in FILES_OF_LIBRARY.items() if find_spec(name) is None for file in files]
