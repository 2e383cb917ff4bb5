"""Risk-coverage curve of selective prediction."""
