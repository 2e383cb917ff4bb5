"""What smooth curve runs through knots, and which one fits best? The parts of the calibrator `spline`."""
