"""Uncertainty by resampling: bootstrap and jackknife, null distributions, confidence intervals, p-values and comparisons."""
