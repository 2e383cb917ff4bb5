"""Calibration of probabilistic classifiers: measure it, test it, draw it, and recalibrate."""

import lazy_loader as _lazy

__version__ = "0.1.0"

# What is public, and where it is, stands in __init__.pyi: editors and type checkers read it, and here it is loaded on first use.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
