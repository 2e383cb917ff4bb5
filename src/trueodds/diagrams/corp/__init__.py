"""The CORP reliability diagram by isotonic regression."""
