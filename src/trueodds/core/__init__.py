"""Errors, settings, results, the registry, random numbers and files; nothing statistical."""
