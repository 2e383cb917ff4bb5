"""Costs with their optimal actions, and gains of out-of-fold calibrators, as decision-based estimators need them."""
