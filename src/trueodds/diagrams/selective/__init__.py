"""What a diagram of risk and coverage draws."""
