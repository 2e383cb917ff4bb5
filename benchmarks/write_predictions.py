"""Script that writes simulated predictions to a Parquet file: `python write_predictions.py FILE ROWS DTYPE`.

The model is overconfident: its probabilities are those of the labels to the power 1.3, normalized.
"""

import sys

import numpy as np
import pyarrow
import pyarrow.parquet

N_CLASSES = 10
ROWS_PER_CHUNK = 1 << 18  # about 20 MB, so that memory does not grow with the file


def write_predictions(path: str, n_rows: int, dtype: str) -> None:
    """Write columns `p_0` to `p_9` of type `dtype`, and `label`, in chunks."""
    rng = np.random.default_rng(0)
    names = [f"p_{k}" for k in range(N_CLASSES)]
    schema = pyarrow.schema([*((name, pyarrow.type_for_alias(dtype)) for name in names), ("label", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, ROWS_PER_CHUNK):
            n = min(ROWS_PER_CHUNK, n_rows - start)
            raw = rng.standard_exponential((n, N_CLASSES)) ** 2
            true_prob = raw / raw.sum(axis=1, keepdims=True)
            predicted = true_prob**1.3
            predicted /= predicted.sum(axis=1, keepdims=True)
            # Inverse transform sampling: the label is the number of cumulative probabilities below a uniform number.
            label = (true_prob.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=N_CLASSES - 1)
            writer.write_table(pyarrow.table([*predicted.T.astype(dtype), label], schema=schema))


if __name__ == "__main__":
    write_predictions(sys.argv[1], int(sys.argv[2]), sys.argv[3])
