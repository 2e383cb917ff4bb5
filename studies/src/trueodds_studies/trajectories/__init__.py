"""Which estimator comes closest? Made distributions, models trained on them, and what each estimator says of resamples."""
