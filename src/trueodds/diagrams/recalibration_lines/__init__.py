"""Lines from each predicted probability through its recalibrated values."""
