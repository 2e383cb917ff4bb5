"""The recalibration line plot: a line from each predicted probability through its recalibrated values."""
