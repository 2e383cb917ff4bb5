"""The GiViTI calibration belt: confidence regions of a polynomial calibration curve in the log odds."""
