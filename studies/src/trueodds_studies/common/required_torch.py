"""Check that PyTorch is installed before a study trains networks."""

from __future__ import annotations

from importlib.util import find_spec

from trueodds.core.errors import InputError, install_command


def require_torch(study: str) -> None:
    """Raise TO806 if PyTorch is not installed."""
    if find_spec("torch") is None:
        raise InputError(
            "TO806", f"The study {study} trains networks with PyTorch.", "no torch", install_command("torch")
        )
