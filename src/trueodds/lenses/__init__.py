"""Lenses: which probabilities and outcomes of the predictions are examined, by which rows, and selective answering."""

# Names of the lenses, or examples of them; `trueodds list` prints them without importing NumPy.
LENS_NAMES = (
    "canonical",
    "confidence",
    "positive",
    "classwise",
    "top-label",
    "top-2",
    "rank:2",
    "class:0",
    "groups:[[0,1],[2]]",
)
