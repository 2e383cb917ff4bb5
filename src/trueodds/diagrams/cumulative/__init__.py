"""The cumulative diagram of residuals, with the estimated cumulative calibration errors (ECCE)."""
