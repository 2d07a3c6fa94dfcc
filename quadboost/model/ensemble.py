"""The fitted model: voters and weights as plain arrays, scored as one step function per feature.

Needs numpy only, so that a service can load and predict without what training needs.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.read_only import ReadOnly
from ..common.threads import resolve_threads
from ..data.schema import TEXT, FrameSchema, is_order, kind_of, to_matrix
from ..kernels.bins import StepFunctions
from ..voters.binned import Binned
from ..voters.bins import bin_index, starts
from ..voters.checking import check_bins, check_patterns, check_trees, check_voters
from ..voters.trees import Trees
from .explained import Explained
from .links import LINKS, check_link, default_link
from .shape_functions import ShapeFunction, shape_functions_of
from .steps import Shape, around_levels, cut_out, leaf_values, shapes_of, tree_values

if TYPE_CHECKING:
    from .rules import Rules

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
LARGEST = sys.float_info.max  # no numpy number: comparing that with a very large int overflows
DERIVED = ("_shapes", "_steps", "_steps_of_values", "_rules")
MOST_CELLS = 1 << 22  # of a table of values of categories and outputs; a larger one would take too much memory
CELLS_FOR_THREADS = 200_000  # rows times step functions, below which a second thread costs more than it brings


class Ensemble(Explained):
    """A weighted sum of stumps and rules. It does not change: arrays and dicts are read-only; `replace` makes another.

    Attributes
    ----------
    feature : int32 array of shape (n,)
    threshold : float64 array of shape (n,)
        Of a level voter: the number of the level; of a missing voter: 0.
    weight : float64 array of shape (n,), or (n, n_outputs)
    intercept : float, or float64 array of shape (n_outputs,)
    kind : uint8 array of shape (n,)
        0: +1 where the feature is above the threshold, else -1; 1: +1 where it is of the level, else -1;
        both 0 where it is missing; 2: +1 where it is missing, else -1.
    n_features : int
    classes : array or None
        Labels; None for a regression.
    feature_names : tuple of str, or None
    categories : dict from feature to list of lists, read-only
        The values that each level of a categorical feature stands for.
    loss : {"squared", "logistic", "huber", "poisson", "quantile"}
        What the weights were fitted to.
    link : {"identity", "log", "clipped", "logit", "softmax"}
        How predictions follow from scores. Of targets: identity, the score itself, or log, its exp. Of labels, by their
        probabilities: clipped, (1 + score) / 2 within [0, 1]; logit, 1 / (1 + exp(-score)), for two classes; softmax,
        for more.
    slope : float, or float64 array of shape (n_outputs,)
        What the weights were multiplied by when the link was folded in; weight / slope are those of the loss.
    bin_mass : float64 array
        Weight of the training rows in each bin of each shape function, in the order of `shape_functions()`, those with
        a missing value last. Empty where it is not known, as in a file of format 1.
    bin_error : float64 array, (n_bins,) or (n_bins, n_outputs)
        Standard error of the value in each of these bins, by the jackknife over folds. Empty where it is not known: it
        takes cross-validation.
    trees : Trees
        Of which every node but the root is a voter, +1 for the rows in it and -1 for the others: a rule.
    node_weight : float64 array of shape (n_nodes,), or (n_nodes, n_outputs)
    node_mass : float64 array of shape (n_nodes,)
        Weight of the training rows in each node. Empty where it is not known.
    pattern_node, pattern : int32 arrays; pattern_mass : float64 array
        Of short rules, the patterns of their conditions that occur in the training rows: the node, bit i for condition
        i of its rule, and the weight of these rows. Empty where they are not known.
    info : dict, read-only
        Parameters, training size and time, figures; whatever JSON can hold.
    schema : FrameSchema
        Features, names and categories, as tables are matched with.
    """

    def __init__(
        self,
        feature: np.ndarray,
        threshold: np.ndarray,
        weight: np.ndarray,
        intercept: float | np.ndarray,
        *,
        kind: np.ndarray | None = None,
        n_features: int,
        classes: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[int, list[list[Any]]] | None = None,
        loss: str = "squared",
        link: str | None = None,
        slope: float | np.ndarray = 1.0,
        bin_mass: np.ndarray | None = None,
        bin_error: np.ndarray | None = None,
        trees: Trees | None = None,
        node_weight: np.ndarray | None = None,
        node_mass: np.ndarray | None = None,
        pattern_node: np.ndarray | None = None,
        pattern: np.ndarray | None = None,
        pattern_mass: np.ndarray | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.feature = np.array(feature, dtype=np.int32, order="C")
        self.threshold = np.array(threshold, dtype=np.float64, order="C")
        self.weight = np.array(weight, dtype=np.float64, order="C")
        self.intercept = float(intercept) if self.weight.ndim == 1 else np.array(intercept, dtype=np.float64)
        self.kind = np.zeros(len(self.feature), np.uint8) if kind is None else np.array(kind, np.uint8, order="C")
        self.classes = None if classes is None else np.array(classes)
        self.loss = loss
        self.link = default_link(classes is not None) if link is None else link
        self.slope = self._slope_of(slope)
        self.bin_mass = np.empty(0) if bin_mass is None else np.array(bin_mass, dtype=np.float64, order="C")
        no_errors = self.weight[:0]
        self.bin_error = np.array(no_errors if bin_error is None else bin_error, dtype=np.float64, order="C")
        self.trees = Trees.none() if trees is None else trees.copy()
        self.node_weight = np.array(no_errors if node_weight is None else node_weight, dtype=np.float64, order="C")
        self.node_mass = np.empty(0) if node_mass is None else np.array(node_mass, dtype=np.float64, order="C")
        self.pattern_node = np.array([] if pattern_node is None else pattern_node, dtype=np.int32, order="C")
        self.pattern = np.array([] if pattern is None else pattern, dtype=np.int32, order="C")
        self.pattern_mass = np.array([] if pattern_mass is None else pattern_mass, dtype=np.float64, order="C")
        self.info = ReadOnly(copy.deepcopy(dict(info or {})))
        self._check(int(n_features), feature_names, categories or {})
        self.schema = FrameSchema(
            n_features=int(n_features),
            feature_names=None if feature_names is None else tuple(feature_names),
            categories=ReadOnly({f: [list(values) for values in levels] for f, levels in (categories or {}).items()}),
            orders=ReadOnly(_orders(self.info, int(n_features), categories or {})),
        )
        self._lock()

    def _lock(self) -> None:
        """What is derived from the voters is made once: they must not change."""
        for value in (*vars(self).values(), *self.trees.arrays().values()):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setattr__(self, name: str, value: Any) -> None:
        if "schema" in vars(self):
            raise AttributeError(f"an Ensemble does not change, and {name} cannot be set; make a new one")
        super().__setattr__(name, value)

    def replace(self, **changes: Any) -> Ensemble:
        """The same model but for some arguments of the constructor, such as feature_names or info.

        Other voters have other bins: what was known of those is forgotten then, and errors with other weights.
        """
        names = ["feature", "threshold", "weight", "intercept", "kind"]
        names += ["n_features", "classes", "feature_names", "categories", "loss", "link", "slope", "info"]
        names += ["trees", "node_weight"] + ([] if "trees" in changes else ["node_mass"])
        if not changes.keys() & {"trees", "categories"}:
            names += ["pattern_node", "pattern", "pattern_mass"]
        if not changes.keys() & {"feature", "threshold", "kind", "categories"}:
            names += ["bin_mass", "bin_error"]
        if "weight" in changes:
            names = [name for name in names if name != "bin_error"]
        return Ensemble(**{name: getattr(self, name) for name in names} | changes)

    def _check(self, n_features: int, names: Sequence[str] | None, categories: Mapping[int, list[list[Any]]]) -> None:
        intercept = np.atleast_1d(self.intercept)
        check_voters(self.feature, self.kind, self.threshold, self.weight, intercept, n_features, categories)
        if self.bin_mass.ndim != 1 or self.bin_error.shape[1:] != self.weight.shape[1:]:
            raise ValueError(
                f"bin_mass has the shape {self.bin_mass.shape} and bin_error {self.bin_error.shape}; give one mass per "
                "bin, and one error for each output"
            )
        check_bins(self.bin_mass, self.bin_error, self.feature, self.kind, categories)
        if self.node_weight.shape[1:] != self.weight.shape[1:]:
            raise ValueError(f"node_weight has the shape {self.node_weight.shape}, and weight {self.weight.shape}")
        check_trees(self.trees, self.node_weight, self.node_mass, n_features, categories)
        check_patterns(self.pattern_node, self.pattern, self.pattern_mass, self.trees.n_nodes)
        if intercept.shape != (self.n_outputs,):
            raise ValueError(f"the intercept has shape {intercept.shape}; there are {self.n_outputs} outputs")
        if self.classes is not None:
            wanted = 2 if self.n_outputs == 1 else self.n_outputs
            if len(self.classes) != wanted:
                raise ValueError(f"there are {len(self.classes)} classes for {self.n_outputs} outputs, not {wanted}")
        check_link(self.loss, self.link, np.atleast_1d(self.slope), self._n_classes)
        if names is not None and len(names) != n_features:
            raise ValueError(f"there are {len(names)} feature_names for {n_features} features")

    def _slope_of(self, slope: Any) -> float | np.ndarray:
        """A float for one output, else one value each."""
        try:
            values = np.array(slope, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"the slope is {slope!r:.60}, not a number") from None
        if values.shape not in ((), (self.n_outputs,)):
            raise ValueError(f"the slope has shape {values.shape}; there are {self.n_outputs} outputs")
        return float(values.ravel()[0]) if self.weight.ndim == 1 else np.resize(values, self.n_outputs)

    def _explained(self) -> Ensemble:
        return self

    @property
    def _n_classes(self) -> int:
        """0 for a regression."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def n_features(self) -> int:
        return self.schema.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.schema.feature_names

    @property
    def categories(self) -> dict[int, list[list[Any]]]:
        return self.schema.categories

    @property
    def n_outputs(self) -> int:
        return 1 if self.weight.ndim == 1 else self.weight.shape[1]

    @property
    def n_rules(self) -> int:
        """Nodes of trees that have a weight."""
        return int(np.count_nonzero(self._node_weights.any(axis=1)))

    @property
    def _weights(self) -> np.ndarray:
        return self.weight.reshape(len(self.feature), self.n_outputs)

    @property
    def _node_weights(self) -> np.ndarray:
        return self.node_weight.reshape(self.trees.n_nodes, self.n_outputs)

    def rules(self) -> Rules:
        """The nodes of trees that have a weight, as conditions on features; the most important first."""
        from .rules import Rules

        return Rules(self._rules)

    @cached_property
    def _rules(self) -> Rules:
        from .rules import rules_of

        return rules_of(self)

    def leaf_values(self) -> np.ndarray:
        """What each tree adds to the scores in each of its leaves, shape (n_nodes, n_outputs); zero at other nodes."""
        return leaf_values(self.trees, self._node_weights)

    @property
    def feature_importances(self) -> np.ndarray | None:
        """Those that the fit left in `info`; None if there are none, or what stands there cannot be any."""
        known: Any = self.info.get("feature_importances")
        if not isinstance(known, list) or len(known) != self.n_features:
            return None
        if not all(type(value) in (int, float) and abs(value) <= LARGEST for value in known):
            return None
        return np.array(known, dtype=np.float64)

    def __repr__(self) -> str:
        what = "regression" if self.classes is None else f"{len(self.classes)} classes"
        rules = f" and {self.n_rules} rules" if self.trees else ""
        return f"<Ensemble: {len(self.feature)} voters{rules} on {self.n_features} features, {what}>"

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The score of every row: shape (m,) for one output, else (m, n_outputs). A 1-d array is one row."""
        return self.scores_of(X[None, :] if type(X) is np.ndarray and X.ndim == 1 else X, n_jobs=n_jobs)

    def scores_of(self, X: Any, *, n_jobs: int | None = None, owner: str = "this model") -> np.ndarray:
        """The score of every row of a table; `owner` is who is said to have been trained, in the errors."""
        steps = self._steps_of_values
        if steps is not None and self._is_plain(X):
            return self._sum(steps, X, n_jobs)
        return self.score_matrix(self.matrix_of(X, owner), n_jobs=n_jobs)

    def matrix_of(self, X: Any, owner: str = "this model") -> np.ndarray:
        """A table as the real matrix that `score_matrix` takes: categories are level numbers, NaN is missing."""
        return X.values() if isinstance(X, Binned) else to_matrix(X, self.schema, owner=owner)

    def score_matrix(self, X: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
        """Scores of what `matrix_of` made."""
        return self._sum(self._steps, X, n_jobs)

    def _is_plain(self, X: Any) -> bool:
        """Whether X needs nothing done to it: the usual case in a service, where every microsecond counts."""
        return (
            type(X) is np.ndarray
            and (X.dtype is FLOAT64 or X.dtype is FLOAT32 or X.dtype in (FLOAT64, FLOAT32))  # the quick answer first
            and X.ndim == 2
            and X.shape[1] == self.schema.n_features
            and X.shape[0] > 0
        )

    def predict(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The label of every row, or the target."""
        return self.predictions_of(self.decision_function(X, n_jobs=n_jobs))

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The probability of every class, shape (m, n_classes)."""
        return self.probabilities_of(self.decision_function(X, n_jobs=n_jobs))

    def shape_functions(self, *, bands: bool = False) -> list[ShapeFunction]:
        """What each feature with a voter adds to the score, as a step function.

        Parameters
        ----------
        bands : bool
            With standard errors, by the jackknife over the folds of the cross-validation that the model came from.
        """
        return shape_functions_of(self, self._shapes, bands)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to an HDF5 file; the file appears whole or not at all."""
        from .file import ModelRecord, write_model

        write_model(path, ModelRecord.of(self))

    def _sum(self, steps: StepFunctions, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        n_threads = (
            1 if len(X) * (steps.n_features + self.trees.n_trees) < CELLS_FOR_THREADS else resolve_threads(n_jobs)
        )
        scores = steps.score(X if X.flags.aligned else X.copy(), n_threads)
        return scores[:, 0] if self.weight.ndim == 1 else scores

    def predictions_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels for scores, or the targets."""
        return LINKS[self.link].predictions(scores) if self.classes is None else self.labels_of(scores)

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels for scores: by the sign of one, by the largest of several."""
        if self.classes is None:
            raise ValueError("a regression has no labels; use predict")
        scores = self._by_class(scores)
        return self.classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """The probability of every class for scores."""
        if self.classes is None:
            raise ValueError("a regression has no class probabilities; use predict")
        return LINKS[self.link].predictions(self._by_class(scores))

    def _by_class(self, scores: np.ndarray) -> np.ndarray:
        """One score for two classes, also where weight has two dimensions."""
        return scores[:, 0] if scores.ndim == 2 and self.n_outputs == 1 else scores

    @cached_property
    def _steps(self) -> StepFunctions:
        """Of level numbers, where a feature is categorical."""
        shapes = []
        for feature, cuts, values in self._shapes:
            if feature in self.categories:
                cuts, row = around_levels(cuts)
                values = values[row]
            shapes.append((feature, cuts, values))
        return self._step_functions(shapes)

    @cached_property
    def _steps_of_values(self) -> StepFunctions | None:
        """Of the values themselves; None if one cannot be told from infinity, or if they would take much memory.

        None also if a feature has levels of text alone, or ordered ones: numbers there may be wrong, and are refused.
        """
        if self.schema.orders:
            return None
        if not self.categories:
            return self._steps
        if self.trees:
            return None
        if any(kind_of(level_of) == TEXT for level_of in self.schema.level_of.values() if level_of):
            return None
        shapes, n_cells = [], 0
        for feature, cuts, values in self._shapes:
            if feature in self.categories:
                level_of = self._values_of_levels(feature, cuts)
                n_cells += 2 * len(level_of) * self.n_outputs
                if n_cells > MOST_CELLS or any(abs(value) >= LARGEST for value in level_of):
                    return None
                cuts, level = cut_out(level_of)
                values = values[np.append(level + 1, -1)]
            shapes.append((feature, cuts, values))
        return self._step_functions(shapes)

    def _values_of_levels(self, feature: int, levels: np.ndarray) -> dict[float, int]:
        """The numbers that some levels stand for, and which of those levels each belongs to."""
        values_of = self.categories[feature]
        return {
            value: n
            for n, level in enumerate(levels.astype(np.intp).tolist())
            for value in values_of[level]
            if not isinstance(value, str)
        }

    def _step_functions(self, shapes: Sequence[Shape]) -> StepFunctions:
        features, cuts, values = zip(*shapes, strict=True) if shapes else ((), (), ())
        return StepFunctions(
            np.array(features, dtype=np.int64),
            bin_index(cuts),
            np.vstack([*values, np.zeros((1, self.n_outputs))]),  # never empty, for the kernel
            starts([len(table) for table in values]),
            np.atleast_1d(np.asarray(self.intercept, dtype=np.float64)),
            tree_values(self.trees, self.leaf_values(), self.categories),
        )

    @cached_property
    def _shapes(self) -> list[Shape]:
        return shapes_of(self.feature, self.kind, self.threshold, self._weights, self.categories)

    def __getstate__(self) -> dict[str, Any]:
        """What is derived from the voters is made anew."""
        return {name: value for name, value in self.__dict__.items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock()


def _orders(info: Mapping[str, Any], n_features: int, categories: Mapping[int, Any]) -> dict[int, list[str]]:
    """The ordered categories that a fit left in `info`; what cannot be one is none."""
    known: Any = info.get("orders")
    found = {}
    for key, levels in known.items() if isinstance(known, dict) else ():
        if str(key).isdecimal() and len(str(key)) < 10 and isinstance(levels, list) and is_order(levels):
            found[int(key)] = list(levels)
    return {feature: order for feature, order in found.items() if feature < n_features and feature not in categories}


def load(path: str | os.PathLike[str], expected_sha256: str | None = None) -> Ensemble:
    """Read a model file.

    Parameters
    ----------
    path : str or path
    expected_sha256 : str, optional
        Refuse a file with another SHA-256 digest.

    Raises
    ------
    ModelFileError
        The file is damaged, forged, of a newer format, or no model at all.
    """
    from .file import read_model

    return Ensemble(**read_model(path, expected_sha256).arguments())
