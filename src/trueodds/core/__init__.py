"""Nothing statistical: errors, results, the registry, random numbers and compiled loops."""
