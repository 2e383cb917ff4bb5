"""Training curves of log loss, accuracy and calibration by epoch."""
