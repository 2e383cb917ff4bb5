"""PyTorch: tallies of tensors, a torchmetrics metric, and losses that regularize calibration; loaded on first use."""

import lazy_loader as _lazy

from trueodds.core.errors import install_command as _install_command

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(f"trueodds.torch needs PyTorch. {_install_command('torch')}", name="torch") from None

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
