"""The confidence histogram: distribution of the predictions, with mean prediction and event rate of all rows."""
