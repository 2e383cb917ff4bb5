"""The study `network_factors`: depth, width, batch normalization and weight decay, and calibration."""
