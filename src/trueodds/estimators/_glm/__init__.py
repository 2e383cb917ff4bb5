"""Likelihoods of outcomes given predicted log odds: logistic regression, and the exponent of several classes."""
