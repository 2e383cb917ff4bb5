"""What all studies share: results, resumable runs, data files, figures, simulated worlds and methods to compare."""
