"""Comparison of models and of subgroups: differences of errors with intervals and p-values."""
