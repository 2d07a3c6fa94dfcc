"""Cross-validation and regularization paths, at the price of few fits: sums and Gram columns are shared."""
