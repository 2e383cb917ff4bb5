"""The training diagram: log loss, accuracy and calibration of one or several training runs by epoch."""
