"""Means from few labels and many scores of a judge: the rows, the recalibrated judge, the estimate and its interval."""
