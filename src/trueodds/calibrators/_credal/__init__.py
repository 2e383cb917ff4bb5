"""Credal calibration: likelihood contours of calibration parameters, and belief functions derived from them."""
