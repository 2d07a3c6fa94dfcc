"""Why a model says what it says: contributions, Shapley values, importances, plots and a report."""
