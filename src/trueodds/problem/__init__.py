"""The question: which rows, which claim about them, which rows are pooled, how far is far."""
