"""Check an installation on the machine where it runs: its files, reference numbers, levels, coverage and laws."""
