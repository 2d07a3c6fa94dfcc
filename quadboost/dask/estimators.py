"""The estimators on Dask collections: a fit makes passes over their partitions, and predictions are lazy.

Each is a plain estimator that is fitted elsewhere. It has the same parameters and one more, the client, and after a fit
the same attributes.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import QuadBoost
from ..estimators.cv import QuadBoostClassifierCV, QuadBoostRegressorCV
from ..estimators.plain import QuadBoostClassifier, QuadBoostRegressor
from ..model.ensemble import Ensemble
from ..parts.source import Part, Source
from .collections import is_collection, parts_of
from .lazy import LazyExplanation, lazily
from .source import check_client, import_dask

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

DOC = """`{0}` for Dask DataFrames and Arrays.

    A fit is the same, to the last bit, as that of `{0}` to all rows in memory, however they are divided. It makes
    passes over the partitions; each is a pure task a partition, so that a worker may die on the way. Rows stay on the
    workers while it lasts, and beside them their codes, a byte or so a value. Parameters and attributes are those of
    `{0}`, and one more:

    Parameters
    ----------
    client : distributed.Client, optional
        None: the current client or, where there is none, Dask's scheduler in this process.
    """


def _with_client(local: type[QuadBoost]) -> Any:
    """The `__init__` of an estimator with a keyword more."""
    plain = inspect.signature(local.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)

    def __init__(self: Any, *arguments: Any, client: Any = None, **parameters: Any) -> None:
        bound = plain.bind(self, *arguments, **parameters)
        bound.apply_defaults()
        self._set_parameters(bound.arguments | {"client": client})

    __init__.__signature__ = plain.replace(parameters=[*plain.parameters.values(), client])  # type: ignore[attr-defined]
    return __init__


def _lazy(name: str) -> Any:
    """A method of the plain estimator that is lazy on Dask collections."""

    def method(self: Any, X: Any) -> Any:
        if not is_collection(X):
            return getattr(self._local, name)(self, X)
        self._check_fitted(X)
        return lazily(self.ensemble_, partial(_answer, name), X)

    method.__name__, method.__doc__ = name, "As in the plain estimator; of a Dask collection, a Dask array."
    return method


def _answer(name: str, ensemble: Ensemble, X: Any) -> np.ndarray:
    found: np.ndarray = getattr(ensemble, name)(X)
    return found


class _OnDask(QuadBoost):
    """What the four share."""

    _local: ClassVar[type[QuadBoost]]  # the estimator for rows in memory

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *others: Any, **more: Any) -> Self:
        """Learn an ensemble.

        Parameters
        ----------
        X : Dask DataFrame or Array
        y : Dask Series, DataFrame or Array
            With the partitions of X, or an index or chunks by which it can be given the same.
        sample_weight : Dask Series or Array, optional
        *others, **more
            What else the `fit` of the plain estimator takes, such as rows for validation: ordinary data.
        """
        import_dask("dask")
        check_client(self.client)
        for value in (*others, *more.values()):
            if is_collection(value):
                raise TypeError(
                    f"a Dask {type(value).__name__} was given beside X, y and sample_weight; give ordinary data there, "
                    "by .compute()"
                )
        source = self._source(X, y, sample_weight)
        local = self._local(**self._plain_parameters())
        try:
            local.fit(source, None, None, *others, **more)
        finally:
            source.close()
        _take_over(self, local)
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source[Part]:
        return parts_of(X, y, sample_weight, self.client)

    def to_local(self) -> Any:
        """The plain estimator with the same parameters, fitted; it knows nothing of Dask."""
        check_is_fitted(self)
        local = self._local(**self._plain_parameters())
        _take_over(local, self)
        return local

    def explain(self, X: Any, *, background: Any = None, scale: str = "score") -> Any:
        """As in the plain estimator; of a Dask collection, a `LazyExplanation`."""
        if not is_collection(X):
            return super().explain(X, background=background, scale=scale)
        self._check_fitted(X)
        return LazyExplanation(self.ensemble_, X, background, scale)

    def _plain_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)
        del parameters["client"]
        return parameters

    def __sklearn_clone__(self) -> Self:
        """A client cannot be copied; both use it."""
        parameters = {name: clone(value, safe=False) for name, value in self._plain_parameters().items()}
        return type(self)(**parameters, client=self.client)

    def __getstate__(self) -> dict[str, Any]:
        """A client cannot be pickled; None is the current one where the estimator is loaded."""
        return super().__getstate__() | {"client": None}


def _take_over(to: QuadBoost, fitted: QuadBoost) -> None:
    """All that a fit has left behind, and nothing of an earlier one."""
    parameters = to.get_params(deep=False).keys() | fitted.get_params(deep=False).keys()
    for name in vars(to).keys() - parameters:
        delattr(to, name)
    for name in vars(fitted).keys() - parameters:
        setattr(to, name, vars(fitted)[name])


class DaskQuadBoostClassifier(_OnDask, QuadBoostClassifier):
    __doc__ = DOC.format("QuadBoostClassifier")
    _local = QuadBoostClassifier
    __init__ = _with_client(QuadBoostClassifier)
    predict = _lazy("predict")
    predict_proba = _lazy("predict_proba")
    decision_function = _lazy("decision_function")


class DaskQuadBoostRegressor(_OnDask, QuadBoostRegressor):
    __doc__ = DOC.format("QuadBoostRegressor")
    _local = QuadBoostRegressor
    __init__ = _with_client(QuadBoostRegressor)
    predict = _lazy("predict")


class DaskQuadBoostClassifierCV(_OnDask, QuadBoostClassifierCV):
    __doc__ = DOC.format("QuadBoostClassifierCV")
    _local = QuadBoostClassifierCV
    __init__ = _with_client(QuadBoostClassifierCV)
    predict = _lazy("predict")
    predict_proba = _lazy("predict_proba")
    decision_function = _lazy("decision_function")


class DaskQuadBoostRegressorCV(_OnDask, QuadBoostRegressorCV):
    __doc__ = DOC.format("QuadBoostRegressorCV")
    _local = QuadBoostRegressorCV
    __init__ = _with_client(QuadBoostRegressorCV)
    predict = _lazy("predict")
