"""Natural cubic splines and their fits for the spline calibrator."""
