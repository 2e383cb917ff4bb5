"""Callbacks that report calibration during training, in a module named for each library."""
