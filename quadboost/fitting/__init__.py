"""One fit, without scikit-learn: from what the user gave to an ensemble."""
