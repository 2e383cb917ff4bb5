"""Lenses: which probabilities and which outcomes of the predictions are examined."""
