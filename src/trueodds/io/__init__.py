"""Read arrays, data frames and files of any size as predictions."""

from trueodds.io.read import read
from trueodds.io.source import Source

__all__ = ["Source", "read"]
