"""Run time and memory of trueodds, compared with other packages and the limits of the machine, and as data grow."""
