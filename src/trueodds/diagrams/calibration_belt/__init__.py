"""The GiViTI calibration belt."""
