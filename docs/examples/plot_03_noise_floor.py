"""
How does the number of rows change the ECE?
===========================================

The ECE of the same calibrated model decreases with the number of rows, as its noise floor does. Values from data of
different sizes are therefore not comparable without it.
"""

# %%
# Twenty data sets of each size are drawn from a calibrated model.
import matplotlib.pyplot as plt
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
sizes = [50, 100, 200, 500, 1000, 2000, 5000]
values, floors = [], []
for n in sizes:
    prob = rng.beta(2, 2, (20, n))
    outcome = (rng.random((20, n)) < prob).astype(int)
    sets = [to.Predictions(y, p) for y, p in zip(outcome, prob, strict=True)]
    values.append(np.mean([to.measure(preds, "ece", interval=None).value for preds in sets]))
    floors.append(to.measure(sets[0], "ece", interval=None).noise_floor)

# %%
# The mean ECE follows the noise floor, which is estimated from a single data set.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.loglog(sizes, values, "o", label="mean ECE of 20 calibrated data sets")
ax.loglog(sizes, floors, "-", label="noise floor of one of them")
ax.set(xlabel="rows", ylabel="ECE")
ax.legend(frameon=False)
