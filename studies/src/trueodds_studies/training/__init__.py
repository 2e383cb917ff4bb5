"""The study `training`: calibration of LeNet by epoch, and training losses compared with temperature scaling."""
