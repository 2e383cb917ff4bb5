"""
Can chance explain the error?
=============================

A calibrated model has a calibration error too, because outcomes are random. A test compares the error with its
distribution for a calibrated model.
"""

# %%
# These predictions are the true probabilities. With 200 rows, their ECE is nevertheless far from 0.
import numpy as np

import trueodds as to

rng = np.random.default_rng(1)
prob = rng.beta(2, 2, 200)
outcome = (rng.random(200) < prob).astype(int)
preds = to.Predictions(outcome, prob)
print(to.measure(preds, "ece"))

# %%
# The test draws labels from the predicted probabilities, and finds errors of this size in many of the draws.
print(to.test(preds, "consistency"))

# %%
# The gray bars of the diagram are the ranges expected by chance.
diagram = to.draw(preds, "reliability")
print(diagram.finding)
