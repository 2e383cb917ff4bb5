"""Study of which estimator of the calibration error comes closest to the true value."""
