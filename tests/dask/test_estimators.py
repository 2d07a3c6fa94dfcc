"""Estimators on Dask collections: the model of one machine, bit for bit, however rows are divided and workers die."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from comparing import assert_same_model
from sklearn.base import clone, is_classifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

import clusters  # noqa: E402
from parts_of_tables import table, targets, weights  # noqa: E402

from quadboost import QuadBoostClassifier, QuadBoostRegressor, load  # noqa: E402
from quadboost import dask as on_dask  # noqa: E402

M = 600
X = table(M)
Y, WEIGHTS = targets(X), weights(M)
FITS = {
    "labels": ("Classifier", {}, "labels"),
    "classes": ("Classifier", {"thresholds": 30, "class_weight": "balanced"}, "classes"),
    "l2": ("Classifier", {"penalty": "l2", "max_rounds": 200}, "labels"),
    "far": ("Regressor", {"monotonic_cst": {"real": 1}}, "far"),
    "two targets": ("Regressor", {"standardize": True, "spacing": "uniform", "thresholds": 9}, "two"),
    "logistic": ("Classifier", {"loss": "logistic", "thresholds": 9}, "labels"),
    "poisson": ("Regressor", {"loss": "poisson", "thresholds": 9}, "counts"),
    "trees": ("Classifier", {"n_trees": 4, "random_state": 3}, "labels"),
    "search": ("ClassifierCV", {"thresholds": 9, "reg_lambda": 3}, "labels"),
    "search of a target": ("RegressorCV", {"thresholds": 9, "reg_lambda": 3}, "far"),
}


@pytest.fixture
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def client():
    with clusters.two_processes() as client:
        yield client


def estimator(kind, client=None, source=lambda parts: parts, **options):
    """One whose source is changed before the fit."""

    class Changed(getattr(on_dask, f"DaskQuadBoost{kind}")):
        def _source(self, X, y, sample_weight):
            return source(super()._source(X, y, sample_weight))

    return Changed(client=client, **options)


def divided(*tables, n_parts, seed):
    """Tables as collections with the same partitions: uneven ones, and some empty."""
    ends = np.sort(np.random.default_rng(seed).integers(0, len(tables[0]) + 1, n_parts - 1)).tolist()
    slices = [slice(*both) for both in zip([0, *ends], [*ends, len(tables[0])], strict=True)]

    def collection(whole):
        if isinstance(whole, np.ndarray):
            shape = (np.nan, *whole.shape[1:])
            blocks = [da.from_delayed(dask.delayed(whole[part]), shape, whole.dtype) for part in slices]
            return da.concatenate(blocks, allow_unknown_chunksizes=True)
        blocks = [dask.delayed(whole.iloc[part]) for part in slices]
        return dd.from_delayed(blocks, meta=whole.iloc[:0], verify_meta=False)

    return [None if whole is None else collection(whole) for whole in tables]


def as_series(values):
    return None if values is None else (pd.Series if np.ndim(values) == 1 else pd.DataFrame)(values)


def assert_same_fit(name, weight, n_parts, seed, **changes):
    kind, options, target = FITS[name]
    y = Y[target]
    found = estimator(kind, **changes, **options).fit(
        *divided(X, as_series(y), as_series(weight), n_parts=n_parts, seed=seed)
    )
    known = found._local(**options).fit(X, y, weight)
    assert_same_model(found, known)
    return found, known


@pytest.mark.thinned
@pytest.mark.parametrize("room", [0, 1 << 60], ids=["elsewhere", "gathered"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("name", FITS)
def test_partitions_give_the_model_of_one_machine(in_this_process, name, weight, room):
    seed = list(FITS).index(name)
    assert_same_fit(name, weight, 1 + 3 * seed, seed, source=lambda parts: replace(parts, room=room))


@pytest.mark.parametrize("by", ["class", "level"])
def test_partitions_of_one_class_or_with_levels_of_their_own_give_the_model_of_one_machine(in_this_process, by):
    y = Y["classes"]
    rows = X.assign(text=X["text"].astype("category"))
    key = y if by == "class" else rows["text"].cat.codes.to_numpy()
    each = [key == value for value in [7, *np.unique(key), 8]]  # the first and the last are empty
    blocks = [rows[is_part].assign(text=rows["text"][is_part].cat.remove_unused_categories()) for is_part in each]
    collections = (
        dd.from_delayed([dask.delayed(block) for block in blocks], meta=rows.iloc[:0], verify_meta=False),
        da.concatenate(  # whose sizes are not known
            [da.from_delayed(dask.delayed(y[is_part]), (np.nan,), y.dtype) for is_part in each],
            allow_unknown_chunksizes=True,
        ),
    )
    found = estimator("Classifier", source=lambda parts: replace(parts, room=0), thresholds=30).fit(*collections)
    order = np.concatenate([np.flatnonzero(is_part) for is_part in each])
    assert_same_model(found, found._local(thresholds=30).fit(rows.iloc[order], y[order]))


def test_a_plain_estimator_is_left(in_this_process, tmp_path):
    found, known = assert_same_fit("labels", None, 3, 0)
    local = found.to_local()
    assert type(local) is QuadBoostClassifier
    assert vars(local).keys() == vars(known).keys()
    assert local.ensemble_.info | {"seconds": 0} == known.ensemble_.info | {"seconds": 0}
    assert local.predict_proba(X).tolist() == known.predict_proba(X).tolist() == found.predict_proba(X).tolist()
    found.save(tmp_path / "model.h5")
    assert load(tmp_path / "model.h5").predict(X).tolist() == known.predict(X).tolist()
    search = assert_same_fit("search", None, 2, 0)[0]
    assert type(search.best_estimator_) is QuadBoostClassifier


@pytest.mark.parametrize("kind", ["Classifier", "Regressor", "ClassifierCV", "RegressorCV"])
def test_parameters_are_those_of_the_plain_estimator_and_the_client(kind):
    one = getattr(on_dask, f"DaskQuadBoost{kind}")
    plain, with_client = one._local(), one(client="somewhere")
    assert with_client.get_params() == plain.get_params() | {"client": "somewhere"}
    assert is_classifier(with_client) == is_classifier(plain)
    copied = clone(with_client.set_params(max_rounds=3))
    assert (copied.max_rounds, copied.client) == (3, "somewhere")
    assert pickle.loads(pickle.dumps(with_client)).get_params() == with_client.get_params() | {"client": None}
    with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
        one(rate=1)


def test_validation_rows_are_ordinary_data(in_this_process):
    rows, y = divided(X, as_series(Y["far"]), n_parts=3, seed=1)
    known = QuadBoostRegressor().fit(X, Y["far"], None, X[:100], Y["far"][:100])
    found = on_dask.DaskQuadBoostRegressor()
    assert_same_model(found.fit(rows, y, None, X[:100], Y["far"][:100]), known)
    with pytest.raises(TypeError, match="a Dask DataFrame was given beside X, y and sample_weight; give ordinary data"):
        found.fit(rows, y, X_val=rows, y_val=Y["far"])


def test_errors_name_the_partition(in_this_process):
    labels = as_series(Y["labels"]).astype(object)
    labels.iloc[-1] = None
    model = on_dask.DaskQuadBoostClassifier()
    with pytest.raises(ValueError, match="partition 2: y holds missing labels; leave those rows out"):
        model.fit(*divided(X, labels, n_parts=3, seed=1))
    weight = pd.Series(np.where(np.arange(M) == 0, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"partition 0: sample_weight holds -1\.0; weights must not be negative"):
        model.fit(*divided(X, as_series(Y["labels"]), weight, n_parts=3, seed=1))
    with pytest.raises(ValueError, match="the labels hold only one class"):
        model.fit(*divided(X, pd.Series(np.ones(M)), n_parts=3, seed=1))
    with pytest.raises(ValueError, match="X has 0 rows in all its partitions"):
        model.fit(*divided(X[:0], as_series(Y["labels"])[:0], n_parts=3, seed=1))
    assert not hasattr(model, "ensemble_")


def test_without_dask_the_extra_is_named(run_python):
    code = """
import sys
sys.modules["dask"] = None
from quadboost.dask import DaskQuadBoostClassifier
try:
    DaskQuadBoostClassifier().fit([[1]], [1])
except ImportError as error:
    print(error)
"""
    assert "install it with pip install 'quadboost[dask]'" in run_python(code)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_two_processes_give_the_model_of_one(client, name):
    seed = 10 + list(FITS).index(name)
    weight = list(WEIGHTS.values())[seed % len(WEIGHTS)]
    assert_same_fit(name, weight, 11, seed, client=client, source=lambda parts: replace(parts, room=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("far", {"Ask", "code_part", "sums_of", "JointSums"}),
        ("trees", {"code_trees", "_Count", "_List", "_Choice"}),
        ("logistic", {"asked", "_sums_towards"}),
    ],
)
def test_workers_that_die_in_any_pass_change_nothing(client, tmp_path, name, passes):
    def killing(source):
        return clusters.KillingSource(source.parts, client, room=0, folder=tmp_path)

    assert_same_fit(name, WEIGHTS["real"], 4, 0, client=client, source=killing)
    killed = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert passes <= killed
