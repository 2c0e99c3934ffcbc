"""Helpers for code that starts jobs by itself."""
