"""The Sphinx extension of the documentation; its modules that read and write pages need no Sphinx."""
