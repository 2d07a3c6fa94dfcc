"""Fits to rows that are in parts: of a table in memory, of files, on other machines."""
