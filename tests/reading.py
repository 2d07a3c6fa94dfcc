"""Any table read by the package: its schema, and the matrix that a model would learn from."""

from __future__ import annotations

import math

import numpy as np

from quadboost.data.schema import FrameSchema, read_table, to_matrix

NAN = math.nan


def learn_schema(X, **options):
    return read_table(X, **options)[0]


def learn_and_convert(X, **options):
    """Schema and matrix; to learn from a table and to read it by what was learnt give the same matrix."""
    schema, matrix = read_table(X, **options)
    again = to_matrix(X, schema)
    np.testing.assert_array_equal(again, matrix)
    assert again.dtype == matrix.dtype
    return schema, matrix


def numbers_schema(n_features, names=None):
    return FrameSchema(n_features, names, {})


def levels(X, **options):
    """Levels of the only column, which is a category."""
    categories = learn_schema(X, **{"min_category_count": 1, **options}).categories
    assert list(categories) == [0]
    return categories[0]


def same(matrix, expected):
    np.testing.assert_array_equal(matrix, np.array(expected, dtype=np.float64))
    assert matrix.dtype in (np.float32, np.float64)
    return True
