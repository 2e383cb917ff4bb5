"""The worlds and candidates of the study of power."""
