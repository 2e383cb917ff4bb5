"""
How many rows are needed?
=========================

``to.power`` simulates labels to find out how many rows a test needs to detect an error of a given size.
"""

# %%
# The predictions of a pilot study with 500 rows. How many rows detect an error of 5 percentage points?
import matplotlib.pyplot as plt
import numpy as np

import trueodds as to

rng = np.random.default_rng(0)
prob = rng.beta(2, 3, 500)
preds = to.Predictions((rng.random(500) < prob).astype(int), prob)
power = to.power(preds, "spiegelhalter", effect=0.05)
print(power)

# %%
# The power with fewer rows:
points = {n: to.power(preds, "spiegelhalter", effect=0.05, n=n) for n in (100, 250)} | {500: power}

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(list(points), [point.power for point in points.values()], "o-")
ax.axhline(power.target, color="gray", linestyle="--")
ax.set(xlabel="rows", ylabel="power", ylim=(0, 1))
