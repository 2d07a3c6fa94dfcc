"""Compiled loops on plain arrays: arrays in, arrays out, no policy. The rounds are in `quadboost._core`.

Python allocates, the kernels fill; arguments are marked IN / OUT. Kernels trust what they are given: the callers check.
"""
