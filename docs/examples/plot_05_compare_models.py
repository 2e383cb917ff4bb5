"""
Which of two models is better calibrated?
=========================================

Two estimates with overlapping intervals can still differ significantly, because both models predict the same rows.
``to.compare`` uses the pairs.
"""

# %%
# The second model is slightly more overconfident than the first.
import numpy as np

import trueodds as to

rng = np.random.default_rng(3)
logit = rng.normal(0, 1.5, 2000)
outcome = (rng.random(2000) < 1 / (1 + np.exp(-logit))).astype(int)
first = to.Predictions(outcome, 1 / (1 + np.exp(-1.2 * logit)))
second = to.Predictions(outcome, 1 / (1 + np.exp(-1.7 * logit)))

comparison = to.compare(first, second, "brier")
print(comparison)

# %%
# A Murphy diagram shows the loss at every decision threshold.
diagram = to.draw({"first": first, "second": second}, "murphy")
print(diagram.finding)
