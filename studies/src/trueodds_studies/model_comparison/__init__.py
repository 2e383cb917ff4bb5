"""Study of whether measures of calibration rank models alike."""
