"""Utilities that the launcher and other parts share."""
