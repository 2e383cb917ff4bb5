"""Uncertainty by resampling: bootstrap, jackknife, null distributions, intervals and comparisons."""
