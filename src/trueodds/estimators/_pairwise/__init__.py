"""Sums over pairs of rows, as kernel and debiased estimators need them: kernels, quadratic forms, pairs within bins."""
