"""Posterior probability of calibration as a function of shift and slope of the log odds (LLO recalibration)."""
