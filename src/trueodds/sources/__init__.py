"""Where do rows come from? Arrays, dataframes and files of any size, read as Predictions."""

from trueodds.sources.reading import read
from trueodds.sources.source import Source

__all__ = ["Source", "read"]
