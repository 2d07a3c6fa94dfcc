"""The fitted model: scoring, shapes, and the file. Needs numpy (and h5py to save) only."""
