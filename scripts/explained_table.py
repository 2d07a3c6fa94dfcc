"""A made-up table of loan applications, for pictures and examples: numbers, text, missing values, a heavy tail."""

from __future__ import annotations

import numpy as np
import pandas as pd

JOBS = ["clerk", "engineer", "farmer", "manager", "nurse", "sales", "student", "teacher"]
OF_JOB = np.array([0.0, 0.5, -0.4, 0.8, 0.3, -0.2, -1.0, 0.5])
HOUSING = ["owns", "rents", "with parents"]


def loans(n_rows: int = 20_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Applications, and whether the loan was paid back. Income works only above a limit; young renters are at risk."""
    rng = np.random.default_rng(seed)
    age = rng.gamma(9, 4.6, n_rows).clip(18, 85).round()
    income = rng.lognormal(10.3, 0.7, n_rows).round(-2)
    savings = np.where(rng.random(n_rows) < 0.55, 0.0, rng.lognormal(7.5, 1.6, n_rows)).round()
    job = rng.choice(len(JOBS), n_rows, p=[0.2, 0.12, 0.06, 0.1, 0.1, 0.2, 0.12, 0.1])
    housing = rng.choice(3, n_rows, p=[0.4, 0.45, 0.15])
    amount = rng.lognormal(8.7, 0.8, n_rows).round(-1)
    years = rng.exponential(6, n_rows).round(1)
    score = (
        1.2 * np.tanh((np.log(income) - 10.2) * 1.6) - 0.7 * (np.log(amount) - 8.7) + 0.3 * np.log1p(savings / 500)
        + OF_JOB[job] + 0.5 * np.minimum(years, 5) / 5 - np.abs(age - 50) / 40
        - 1.1 * ((housing == 1) & (age < 30)) + np.array([0.3, 0.0, -0.2])[housing]
    )  # fmt: skip
    paid = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-1.4 * score)), "paid", "default")
    years[rng.random(n_rows) < 0.12] = np.nan
    table = pd.DataFrame(
        {
            "age": age, "income": income, "savings": savings, "job": np.array(JOBS)[job],
            "housing": np.array(HOUSING)[housing], "amount": amount, "years in job": years,
        }
    )  # fmt: skip
    return table, paid
