"""Likelihoods of the tests that regress outcomes on log odds: forward selection, calibration belt, and MCLLO."""
