"""Which claim is examined: a lens turns predictions into one view or several."""
