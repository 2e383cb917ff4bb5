"""Likelihood methods of the logistic calibration tests: logits, fits, forward selection, the calibration belt and MCLLO."""
