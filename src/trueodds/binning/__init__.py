"""Partitions that assign rows to bins, and distances between mean prediction and observed frequency."""
