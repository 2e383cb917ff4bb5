"""Smoothers of scores that estimators, tests and diagrams share: kernel densities and local polynomial regression."""
