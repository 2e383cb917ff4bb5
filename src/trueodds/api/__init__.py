"""The public functions of the package, one module each, and modules that resolve their arguments."""
