"""Lenses: which probabilities and outcomes of the predictions are examined, by which rows, and selective answering."""
