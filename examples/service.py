"""A service that scores rows by a model file: MODEL=model.h5 uvicorn service:app

Needs fastapi, uvicorn, quadboost; scikit-learn is not imported.
"""

import os
from typing import Any

from fastapi import FastAPI, HTTPException

import quadboost

model = quadboost.load(os.environ["MODEL"], expected_sha256=os.environ.get("MODEL_SHA256"))
app = FastAPI(title="QuadBoost", version=quadboost.__version__)


@app.get("/model")
def describe() -> dict[str, Any]:
    return {"model": repr(model), "features": model.feature_names, "loss": model.loss}


@app.post("/predict")
def predict(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The prediction for each row, its probabilities, and the three strongest reasons."""
    try:
        scores, reasons = model.decision_function(rows), model.explain(rows).reasons(3)
    except (ValueError, TypeError) as error:
        raise HTTPException(422, str(error)) from error
    answers = [{"prediction": own} for own in model.predictions_of(scores).tolist()]
    if model.classes is not None:
        names = [str(label) for label in model.classes.tolist()]
        chances = [dict(zip(names, own, strict=True)) for own in model.probabilities_of(scores).tolist()]
        answers = [answer | {"probabilities": own} for answer, own in zip(answers, chances, strict=True)]
    return [answer | {"reasons": own} for answer, own in zip(answers, reasons, strict=True)]
