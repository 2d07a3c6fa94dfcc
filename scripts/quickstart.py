"""Train a classifier on an example that comes with scikit-learn, save it, load it and predict."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import quadboost
from quadboost import QuadBoostClassifier


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    model = QuadBoostClassifier().fit(X_train, y_train)
    predicted = model.predict(X_test)
    print(f"trained on {len(y_train)} examples: test error {np.mean(predicted != y_test):.3f}")

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "quadboost-example.h5")
        model.save(path)
        print(f"saved {path.name}: {path.stat().st_size} bytes")
        loaded = quadboost.load(path)

    if not np.array_equal(loaded.predict(X_test), predicted):
        raise SystemExit("the loaded model does not predict as the one that was saved")
    print(f"loaded: the same {len(predicted)} predictions")


if __name__ == "__main__":
    main()
