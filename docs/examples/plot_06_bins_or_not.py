"""
Which calibration curve needs no bins?
======================================

A reliability diagram depends on its bins. Isotonic regression (CORP), a kernel estimate, and the calibration belt do
not need any.
"""

# %%
# The predictions are correct below 0.5 and too high above.
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.uniform(0, 1, 1500)
true_prob = np.where(prob < 0.5, prob, 0.5 + 0.6 * (prob - 0.5))
preds = to.Predictions((rng.random(1500) < true_prob).astype(int), prob)

corp = to.draw(preds, "corp")
print(corp.finding)

# %%
# The kernel estimate with its simultaneous band:
curve = to.draw(preds, "reliability_curve")
print(curve.finding)

# %%
# The belt contains all calibration curves that fit the data:
belt = to.draw(preds, "calibration_belt")
print(belt.finding)
