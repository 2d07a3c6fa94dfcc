"""Columns of codes and their voters: what is asked of the data."""
