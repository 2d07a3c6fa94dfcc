"""Names that packages far apart must agree on, where importing one another would be heavy or against the flow."""

LOSSES = ("squared", "logistic", "huber", "poisson", "quantile")
