"""Study of how much the choice of bins changes a calibration error."""
