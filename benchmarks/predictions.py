"""Write predictions of an overconfident model to a Parquet file: `python predictions.py FILE ROWS DTYPE`."""

import sys

import numpy as np
import pyarrow
import pyarrow.parquet

CLASSES = 10
CHUNK = 1 << 18  # rows per chunk, about 20 MB: memory does not grow with the file


def main(path: str, rows: int, dtype: str) -> None:
    """Write the file in chunks."""
    rng = np.random.default_rng(0)
    names = [f"p_{k}" for k in range(CLASSES)]
    schema = pyarrow.schema([*((name, pyarrow.type_for_alias(dtype)) for name in names), ("label", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            raw = rng.standard_exponential((n, CLASSES)) ** 2
            truth = raw / raw.sum(axis=1, keepdims=True)
            predicted = truth**1.3
            predicted /= predicted.sum(axis=1, keepdims=True)
            label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=CLASSES - 1)
            writer.write_table(pyarrow.table([*predicted.T.astype(dtype), label], schema=schema))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
