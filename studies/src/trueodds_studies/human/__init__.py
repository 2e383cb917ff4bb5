"""Study of calibration against gold labels, majority labels and the votes of many annotators."""
