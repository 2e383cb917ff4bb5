"""Shared drawing code of the diagrams: style, layout, legends, axes and number formats."""
