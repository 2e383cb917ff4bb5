"""The reliability diagram (calibration plot) with bins and consistency bars."""
