"""QuadBoost and other libraries, each made to boost stumps for the squared loss, behind one interface.

All have at most 255 bins a feature, no penalty, no subsampling, no least size of a leaf, and the same learning
step, so that a round is the same work and its outcome nearly the same model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarking import generate, memory_above, missing_packages, tell

N_BINS = 255
STEP = 1.0  # QuadBoost without a penalty takes the whole step
Score = Callable[[np.ndarray], np.ndarray]

# What comes before `cold_start` in a fresh interpreter.
COLD_START_HEAD = "import sys, numpy; path = sys.argv[1]; row = numpy.zeros((1, int(sys.argv[2]))); "


class Contender:
    """A library. A model is whatever its `fit` or `load` returns."""

    title: str
    packages: tuple[str, ...]
    suffix: str  # of the model's file
    cold_start: str  # code that loads a model from `path` and scores `row`

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        """From the matrix to a model for the squared loss."""
        raise NotImplementedError

    def scorer(self, model: Any, threads: int) -> Score:
        """The leanest way that the library documents from a float64 matrix to scores."""
        raise NotImplementedError

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        """The library's scikit-learn estimator for labels."""
        raise NotImplementedError

    def save(self, model: Any, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path) -> Any:
        raise NotImplementedError


class QuadBoost(Contender):
    title = "QuadBoost"
    packages = ("quadboost",)
    suffix = ".h5"
    cold_start = "import quadboost; quadboost.load(path).decision_function(row)"

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        from quadboost import QuadBoostRegressor

        model = QuadBoostRegressor(None, thresholds=N_BINS, max_rounds=rounds, tol=0, n_jobs=threads)
        return model.fit(X, y).ensemble_

    def scorer(self, model: Any, threads: int) -> Score:
        return lambda X: model.decision_function(X, n_jobs=threads)

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from quadboost import QuadBoostClassifier

        return QuadBoostClassifier(None, thresholds=N_BINS, max_rounds=rounds, tol=0, n_jobs=threads).fit(X, labels)

    def save(self, model: Any, path: Path) -> None:
        model.save(path)

    def load(self, path: Path) -> Any:
        import quadboost

        return quadboost.load(path)


class LightGBM(Contender):
    title = "LightGBM"
    packages = ("lightgbm",)
    suffix = ".txt"
    cold_start = "import lightgbm; lightgbm.Booster(model_file=path).predict(row)"

    def _parameters(self, threads: int) -> dict[str, Any]:
        return {
            "num_leaves": 2,
            "max_depth": 1,
            "max_bin": N_BINS,
            "learning_rate": STEP,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 0.0,
            "num_threads": threads,
            "verbosity": -1,
        }

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        import lightgbm

        parameters = {"objective": "regression", **self._parameters(threads)}
        booster = lightgbm.train(parameters, lightgbm.Dataset(X, y, params=parameters), rounds)
        return booster.free_dataset()

    def scorer(self, model: Any, threads: int) -> Score:
        return lambda X: model.predict(X, num_threads=threads)

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=rounds, **self._parameters(threads)).fit(X, labels)

    def save(self, model: Any, path: Path) -> None:
        model.save_model(path)

    def load(self, path: Path) -> Any:
        import lightgbm

        return lightgbm.Booster(model_file=path)


class XGBoost(Contender):
    title = "XGBoost"
    packages = ("xgboost",)
    suffix = ".ubj"
    cold_start = "import xgboost; xgboost.Booster(model_file=path).inplace_predict(row)"

    def _parameters(self) -> dict[str, Any]:
        return {
            "tree_method": "hist",
            "max_depth": 1,
            "max_bin": N_BINS,
            "learning_rate": STEP,
            "reg_lambda": 0.0,
            "min_child_weight": 0.0,
        }

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        import xgboost

        data = xgboost.QuantileDMatrix(X, y, max_bin=N_BINS, nthread=threads)
        return xgboost.train({**self._parameters(), "nthread": threads}, data, rounds)

    def scorer(self, model: Any, threads: int) -> Score:
        model.set_param({"nthread": threads})
        return model.inplace_predict

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=rounds, n_jobs=threads, **self._parameters()).fit(X, labels)

    def save(self, model: Any, path: Path) -> None:
        model.save_model(path)

    def load(self, path: Path) -> Any:
        import xgboost

        return xgboost.Booster(model_file=path)


class CatBoost(Contender):
    title = "CatBoost"
    packages = ("catboost",)
    suffix = ".cbm"
    cold_start = "import catboost; catboost.CatBoost().load_model(path).predict(row)"

    def _parameters(self, rounds: int, threads: int) -> dict[str, Any]:
        return {
            "iterations": rounds,
            "depth": 1,
            "border_count": N_BINS,
            "learning_rate": STEP,
            "l2_leaf_reg": 0.0,
            "random_strength": 0.0,
            "bootstrap_type": "No",
            "boosting_type": "Plain",
            "score_function": "L2",
            "leaf_estimation_iterations": 1,
            "thread_count": threads,
            "allow_writing_files": False,
            "logging_level": "Silent",
        }

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        from catboost import CatBoostRegressor

        return CatBoostRegressor(**self._parameters(rounds, threads)).fit(X, y)

    def scorer(self, model: Any, threads: int) -> Score:
        return lambda X: model.predict(X, thread_count=threads)

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(**self._parameters(rounds, threads)).fit(X, labels)

    def save(self, model: Any, path: Path) -> None:
        model.save_model(str(path))

    def load(self, path: Path) -> Any:
        from catboost import CatBoost

        return CatBoost().load_model(str(path))


class Pickled(Contender):
    """Models without a file format of their own."""

    suffix = ".joblib"
    cold_start = "import joblib; joblib.load(path).predict(row)"

    def save(self, model: Any, path: Path) -> None:
        import joblib

        joblib.dump(model, path)

    def load(self, path: Path) -> Any:
        import joblib

        return joblib.load(path)


class HistGradientBoosting(Pickled):
    """Has no parameter for threads: `interleaved` limits those of OpenMP."""

    title = "HistGradientBoosting"
    packages = ("sklearn",)

    def _parameters(self, rounds: int) -> dict[str, Any]:
        return {
            "max_iter": rounds,
            "max_depth": 1,
            "max_bins": N_BINS,
            "learning_rate": STEP,
            "min_samples_leaf": 1,
            "early_stopping": False,
        }

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(**self._parameters(rounds)).fit(X, y)

    def scorer(self, model: Any, threads: int) -> Score:
        return model.predict

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(**self._parameters(rounds)).fit(X, labels)


class EBM(Pickled):
    """Takes the features in turn: one of its rounds is a step for every feature, so it has as many rounds less."""

    title = "EBM"
    packages = ("interpret",)

    def _parameters(self, X: np.ndarray, rounds: int, threads: int) -> dict[str, Any]:
        return {
            "feature_types": ["continuous"] * X.shape[1],  # or it looks at every value as text
            "interactions": 0,
            "max_rounds": -(-rounds // X.shape[1]),
            "max_leaves": 2,
            "max_bins": N_BINS + 1,
            "learning_rate": STEP,
            "min_samples_leaf": 1,
            "min_hessian": 0.0,
            "outer_bags": 1,
            "validation_size": 0,
            "early_stopping_rounds": 0,
            "smoothing_rounds": 0,
            "greedy_ratio": 0.0,
            "n_jobs": threads,
        }

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        from interpret.glassbox import ExplainableBoostingRegressor

        return ExplainableBoostingRegressor(**self._parameters(X, rounds, threads)).fit(X, y)

    def scorer(self, model: Any, threads: int) -> Score:
        return model.predict

    def fit_estimator(self, X: np.ndarray, labels: np.ndarray, rounds: int, threads: int) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(**self._parameters(X, rounds, threads)).fit(X, labels)


class ONNXRuntime(Contender):
    """A LightGBM model, converted; in single precision, as converters do it."""

    title = "ONNX Runtime"
    packages = ("onnxruntime", "onnxmltools", "lightgbm")
    suffix = ".onnx"
    cold_start = (
        "import onnxruntime; session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider']); "
        "session.run(None, {'X': row.astype('float32')})"
    )

    def fit(self, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> Any:
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType

        booster = LightGBM().fit(X, y, rounds, threads)
        kinds = [("X", FloatTensorType([None, X.shape[1]]))]
        return convert_lightgbm(booster, initial_types=kinds, zipmap=False).SerializeToString()

    def scorer(self, model: Any, threads: int) -> Score:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda X: session.run(None, {"X": X.astype(np.float32)})[0][:, 0]

    def save(self, model: Any, path: Path) -> None:
        path.write_bytes(model)

    def load(self, path: Path) -> Any:
        return path.read_bytes()


OURS = "quadboost"
BOOSTERS: dict[str, Contender] = {
    OURS: QuadBoost(),
    "lightgbm": LightGBM(),
    "xgboost": XGBoost(),
    "histgradientboosting": HistGradientBoosting(),
    "catboost": CatBoost(),
    "ebm": EBM(),
}


def choose(names: str | None, known: dict[str, tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """The peers asked for that are installed, and what to say of the others."""
    wanted = list(known) if names is None else [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"--peers: {unknown[0]!r} is not known; choose from {', '.join(known)}")
    missing = {name: missing_packages(known[name]) for name in wanted}
    skipped = [f"{name} ({', '.join(packages)} not installed)" for name, packages in missing.items() if packages]
    for sentence in skipped:
        tell(f"left out: {sentence}")
    return [name for name in wanted if not missing[name]], skipped


def memory_of_fit(name: str, folder: str, rounds: int, threads: int) -> int:
    """Bytes that a fit needs above X.npy and y.npy of the folder; for a fresh process."""
    warnings.simplefilter("ignore")
    contender = BOOSTERS[name]
    contender.fit(*generate(200, 3), 2, threads)  # imports and the like are not the fit's
    X, y = np.load(Path(folder, "X.npy")), np.load(Path(folder, "y.npy"))
    return memory_above(lambda: contender.fit(X, y, rounds, threads))
