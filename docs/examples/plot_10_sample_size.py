"""
How many rows are needed?
=========================

``to.power`` simulates labels to find out how many rows a test needs to detect an error of a given size.
"""

# %%
# The predictions of a pilot study with 500 rows. How many rows detect an error of 5 percentage points?
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.beta(2, 3, 500)
preds = to.Predictions((rng.random(500) < prob).astype(int), prob)
power = to.power(preds, "spiegelhalter", effect=0.05)
print(power)
