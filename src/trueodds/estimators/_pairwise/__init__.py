"""Sums over pairs of rows, shared by kernel and debiased estimators: kernels, quadratic forms, pairs within bins."""
