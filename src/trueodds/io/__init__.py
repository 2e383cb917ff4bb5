"""Where do rows come from? Arrays, dataframes and files of any size, read as Predictions."""

from trueodds.io.reading import read
from trueodds.io.source import Source

__all__ = ["Source", "read"]
