"""The cumulative diagram of calibration errors (ECCE)."""
