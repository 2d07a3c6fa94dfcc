"""Names that packages far apart must agree on, where importing one another would be heavy or against the flow."""

LOSSES = ("squared", "logistic", "huber", "poisson", "quantile")
METRICS = {  # that early stopping can go by
    "classification": ("error", "log_loss", "roc_auc"),
    "regression": ("rmse", "mae", "r2"),
}
