"""The CORP reliability diagram, which estimates event rates by isotonic regression."""
