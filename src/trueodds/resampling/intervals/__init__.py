"""Confidence intervals: one module per interval method or family of methods."""
