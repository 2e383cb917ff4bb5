"""Likelihoods of the tests that regress outcomes on log odds: logistic fits, forward selection, belt and MCLLO."""
