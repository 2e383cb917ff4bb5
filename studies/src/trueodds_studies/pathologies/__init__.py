"""Study of what a calibration error cannot detect, on data sets small enough to compute by hand."""
