"""Moments in, weights out: penalties, rounds, re-weighting, stopping."""
