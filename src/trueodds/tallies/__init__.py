"""Tallies: sums over rows that add across batches and machines."""
