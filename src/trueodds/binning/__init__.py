"""Partitions that assign rows to bins, and distances between mean prediction and observed frequency."""

# Names of the partitions, or examples of them; `trueodds list` prints them without importing NumPy.
PARTITION_NAMES = (
    "uniform",
    "equal-mass",
    "mass:100",
    "sweep",
    "edges",
    "median-variance",
    "predicted-class",
    "simplex-grid",
    "distinct",
)
