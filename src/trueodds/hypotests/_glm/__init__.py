"""Likelihood methods of the logistic tests: logits, fits, forward selection, calibration belt and MCLLO."""
