"""Modules that Horovod's users import from here."""
