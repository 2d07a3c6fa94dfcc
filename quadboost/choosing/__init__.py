"""Cross-validation and regularization paths, at the price of a few fits."""
