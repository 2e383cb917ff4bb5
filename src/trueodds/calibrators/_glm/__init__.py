"""Maximum likelihood fits of logistic and log-linear calibration maps (generalized linear models, GLM)."""
