"""Likelihood contours of calibration parameters, and belief functions derived from them."""
