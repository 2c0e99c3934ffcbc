"""Hosts and ranks, for code that places workers by itself."""
