"""Benchmarks: run time and memory of trueodds, compared with other packages, with the limits of the machine, and as data grow."""
