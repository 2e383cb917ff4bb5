"""Statistics of residual sums in nested cells, and their combination into one claim per lens."""
