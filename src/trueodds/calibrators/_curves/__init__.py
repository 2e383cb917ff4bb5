"""Calibration curves of one class and their combination into rows that sum to 1."""
