"""What models and estimators say of themselves; explanations are imported when they are first asked for."""

from __future__ import annotations

from typing import Any


class Explained:
    """Explanations and plots of a model; a subclass says which ensemble they are of."""

    def _explained(self) -> Any:
        raise NotImplementedError

    def explain(self, X: Any, *, background: Any = None, scale: str = "score") -> Any:
        """What each term contributes to the score of each row: an `Explanation`.

        Parameters
        ----------
        X : table
        background : table, optional
            The rows that contributions are compared with. By default the training rows, which the model has counted.
        scale : {"score", "prediction"}
            "prediction": contributions to the probability (of two classes, of the second), or to the target. They add
            up to it, but depend on the way from the base to the score: the straight line, all terms growing together.
        """
        from ..explain.terms import explain

        return explain(self._explained(), X, background=background, scale=scale, owner=type(self).__name__)

    def importances(self, kind: str = "mean_abs", X: Any = None, by: str = "term") -> list[Any]:
        """How much each term moves the scores, the largest first.

        Parameters
        ----------
        kind : {"mean_abs", "std", "range"}
            Mean of the absolute contribution, its standard deviation, or the largest less the smallest value.
        X : table, optional
            On these rows. By default on the training rows, which the model has counted.
        by : {"term", "feature"}
            "feature": what rules add is split between their features; then X is needed.
        """
        from ..explain.importance import importances

        return importances(self._explained(), kind, X, by)

    def plot_shape(self, feature: int | str, *, output: int | None = None, ax: Any = None) -> Any:
        """Draw what a feature adds to the score, with its band and counts where they are known. Needs matplotlib."""
        from ..explain.plots import plot_shape

        return plot_shape(self._explained(), feature, output=output, ax=ax)

    def plot_importances(self, kind: str = "mean_abs", X: Any = None, *, n: int = 20, ax: Any = None) -> Any:
        """Draw the n largest importances. Needs matplotlib."""
        from ..explain.plots import plot_importances

        return plot_importances(self._explained(), kind, X, n=n, ax=ax)

    def plot_rules(self, *, output: int | None = None, n: int = 15, ax: Any = None) -> Any:
        """Draw the n most important rules. Needs matplotlib."""
        from ..explain.plots import plot_rules

        return plot_rules(self._explained(), output=output, n=n, ax=ax)

    def plot_pair(self, first: int | str, second: int | str, *, output: int | None = None, ax: Any = None) -> Any:
        """Draw what the rules about just two features add to the score, as a heat map. Needs matplotlib."""
        from ..explain.plots import plot_pair

        return plot_pair(self._explained(), first, second, output=output, ax=ax)

    def plot_calibration(self, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> Any:
        """Draw how often the second of two classes is found among rows with like probabilities. Needs matplotlib."""
        from ..explain.plots import plot_calibration

        return plot_calibration(self._explained(), X, y, n_bins=n_bins, ax=ax)
