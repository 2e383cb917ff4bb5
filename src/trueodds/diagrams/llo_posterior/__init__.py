"""Posterior probability of calibration over shift and slope of the log odds."""
