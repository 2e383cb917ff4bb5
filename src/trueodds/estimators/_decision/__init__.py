"""Costs of decisions and gains of calibrators fitted on other rows, shared by estimators of utility and regret."""
