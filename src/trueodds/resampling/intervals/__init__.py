"""Confidence intervals: one module per family of methods."""
