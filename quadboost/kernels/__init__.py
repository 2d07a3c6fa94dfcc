"""Compiled loops on plain arrays: arrays in, arrays out, no policy. The rounds are in `quadboost._core`."""
