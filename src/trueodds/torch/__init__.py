"""PyTorch: tallies of tensors, a torchmetrics metric, and losses that regularize calibration; loaded on first use."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
