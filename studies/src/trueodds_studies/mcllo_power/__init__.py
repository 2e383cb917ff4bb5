"""Study of the size and power of the MCLLO test and of its parameter estimates."""
