"""Scores: an ensemble of stumps is a sum of one step function per feature.

A module of its own, for a service that only predicts. Reads any strides, float32 and float64, without a copy.
"""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from quadboost.kernels.bins cimport ROWS_OF_BLOCK, BucketRule, add_values, bins_of, copy_doubles, copy_floats

import numpy as np

cnp.import_array()


cdef class StepFunctions:
    """Step functions of some features, ready to be summed over rows; safe to share between threads."""
    cdef readonly Py_ssize_t n_outputs
    cdef readonly Py_ssize_t n_features
    cdef const int64_t[::1] _feature
    cdef const double[::1] _cuts
    cdef const int32_t[::1] _place
    cdef const BucketRule[::1] _rule
    cdef const double[:, ::1] _value
    cdef const int64_t[::1] _value_start
    cdef const double[::1] _intercept

    def __init__(self, feature, bins, value, value_start, intercept):
        """`bins` is a `BinIndex` of bins.py; `value` has a row per bin, then one for missing, function by function."""
        self._feature = feature
        self._cuts, self._place, self._rule = bins
        self._value = value
        self._value_start = value_start
        self._intercept = intercept
        self.n_outputs = value.shape[1]
        self.n_features = feature.shape[0]

    def score(self, cnp.ndarray X, int n_threads):
        """The scores of the rows of X, of shape (m, n_outputs); X is 2-d, aligned, float32 or float64."""
        cdef cnp.npy_intp shape[2]
        shape[0], shape[1] = X.shape[0], self.n_outputs
        cdef cnp.ndarray out = cnp.PyArray_EMPTY(2, shape, cnp.NPY_FLOAT64, 0)
        cdef Py_ssize_t m = X.shape[0], step = ROWS_OF_BLOCK, n_blocks = (m + step - 1) // step, b
        cdef const char* data = <const char*> cnp.PyArray_DATA(X)
        cdef double* scores = <double*> cnp.PyArray_DATA(out)
        cdef Py_ssize_t by_row = X.strides[0], by_column = X.strides[1]
        cdef bint single = cnp.PyArray_TYPE(X) == cnp.NPY_FLOAT32
        if n_threads == 1:
            with nogil:
                for b in range(n_blocks):
                    self._score(data + b * step * by_row, by_row, by_column, single, min(step, m - b * step),
                                scores + b * step * self.n_outputs)
        else:
            for b in prange(n_blocks, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
                self._score(data + b * step * by_row, by_row, by_column, single, min(step, m - b * step),
                            scores + b * step * self.n_outputs)
        return out

    cdef void _score(
        self, const char* X, Py_ssize_t by_row, Py_ssize_t by_column, bint single, Py_ssize_t n, double* out,
    ) noexcept nogil:
        """The scores of n rows, at most ROWS_OF_BLOCK."""
        cdef double x[ROWS_OF_BLOCK]
        cdef int32_t bins[ROWS_OF_BLOCK]
        cdef Py_ssize_t s, r, o
        cdef const char* column
        for r in range(n):
            for o in range(self.n_outputs):
                out[r * self.n_outputs + o] = self._intercept[o]
        for s in range(self.n_features):
            column = X + self._feature[s] * by_column
            if single:
                copy_floats(column, by_row, n, x)
            else:
                copy_doubles(column, by_row, n, x)
            bins_of(x, n, &self._rule[s], &self._cuts[0], &self._place[0], bins)
            self._add(bins, n, &self._value[self._value_start[s], 0], out)

    cdef void _add(self, const int32_t* bins, Py_ssize_t n, const double* value, double* out) noexcept nogil:
        """Add one step function to the scores of n rows."""
        cdef Py_ssize_t r, o
        cdef const double* own
        if self.n_outputs == 1:
            add_values(bins, n, value, out)
        else:
            for r in range(n):
                own = value + self.n_outputs * bins[r]
                for o in range(self.n_outputs):
                    out[r * self.n_outputs + o] += own[o]
