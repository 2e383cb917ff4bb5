"""Monitoring of calibration over time: evidence that is a sum, cohorts of predictions, and the report."""
