"""Validated input: predictions, labels, weights, groups, clusters and votes."""
