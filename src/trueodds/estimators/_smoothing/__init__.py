"""Shared smoothers: kernel densities, local polynomial regression and isotonic regression."""
