"""Scores: an ensemble of stumps is a sum of one step function per feature.

A module of its own, for a service that only predicts. Reads any strides, float32 and float64, without a copy.
"""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from quadboost._bins cimport BinIndex, bin_index_of, bin_of, rows_of_block

import numpy as np

cnp.import_array()

ctypedef fused real_t:
    float
    double


cdef class StepFunctions:
    """Step functions of some features, ready to be summed over rows; safe to share between threads."""
    cdef readonly Py_ssize_t n_outputs
    cdef readonly Py_ssize_t n_features
    cdef const int64_t[::1] _feature
    cdef const double[::1] _cuts
    cdef const int64_t[::1] _cut_start
    cdef const int32_t[::1] _place
    cdef const int64_t[::1] _place_start
    cdef const double[::1] _low
    cdef const double[::1] _scale
    cdef const int32_t[::1] _shift
    cdef const double[:, ::1] _value
    cdef const double[::1] _intercept

    def __init__(self, feature, bins, value, intercept):
        """`bins` is a `BinIndex` of bins.py; `value` has a row per bin, then one for missing, function by function."""
        self._feature = feature
        (self._cuts, self._cut_start, self._place, self._place_start, self._low, self._scale, self._shift) = bins
        self._value = value
        self._intercept = intercept
        self.n_outputs = value.shape[1]
        self.n_features = feature.shape[0]

    def score(self, cnp.ndarray X, int n_threads):
        """The scores of the rows of X, of shape (m, n_outputs); X is 2-d, aligned, float32 or float64."""
        cdef cnp.npy_intp shape[2]
        shape[0], shape[1] = X.shape[0], self.n_outputs
        cdef cnp.ndarray out = cnp.PyArray_EMPTY(2, shape, cnp.NPY_FLOAT64, 0)
        cdef Py_ssize_t m = X.shape[0], step = rows_of_block(self.n_features), n_blocks = (m + step - 1) // step, b
        cdef const char* data = <const char*> cnp.PyArray_DATA(X)
        cdef double* scores = <double*> cnp.PyArray_DATA(out)
        cdef Py_ssize_t by_row = X.strides[0], by_column = X.strides[1]
        cdef bint single = cnp.PyArray_TYPE(X) == cnp.NPY_FLOAT32
        if n_threads == 1:
            with nogil:
                self._score(data, by_row, by_column, single, scores, 0, m, step)
        else:
            for b in prange(n_blocks, nogil=True, schedule="static", num_threads=n_threads):
                self._score(data, by_row, by_column, single, scores, b * step, min(m, (b + 1) * step), step)
        return out

    cdef void _score(
        self, const char* X, Py_ssize_t by_row, Py_ssize_t by_column, bint single, double* out,
        Py_ssize_t first, Py_ssize_t last, Py_ssize_t step,
    ) noexcept nogil:
        cdef Py_ssize_t s, start, end
        start = first
        while start < last:
            end = min(last, start + step)
            self._fill(out, start, end)
            for s in range(self._feature.shape[0]):
                if single:
                    _add(<const float*> NULL, X + self._feature[s] * by_column, by_row, self._index(s),
                         &self._value[self._cut_start[s] + s, 0], self.n_outputs, out, start, end)
                else:
                    _add(<const double*> NULL, X + self._feature[s] * by_column, by_row, self._index(s),
                         &self._value[self._cut_start[s] + s, 0], self.n_outputs, out, start, end)
            start = end

    cdef void _fill(self, double* out, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t r, o
        for r in range(first, last):
            for o in range(self.n_outputs):
                out[r * self.n_outputs + o] = self._intercept[o]

    cdef BinIndex _index(self, Py_ssize_t s) noexcept nogil:
        return bin_index_of(self._cuts, self._cut_start, self._place, self._place_start, self._low, self._scale,
                            self._shift, s)


cdef void _add(
    const real_t* kind, const char* column, Py_ssize_t by_row, BinIndex index, const double* value,
    Py_ssize_t n_outputs, double* out, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Add one step function to the scores of some rows. (`kind` only says the type of the column.)"""
    cdef Py_ssize_t r, o
    cdef const double* own
    if n_outputs == 1:
        for r in range(first, last):
            out[r] += value[bin_of((<const real_t*> (column + r * by_row))[0], index)]
    else:
        for r in range(first, last):
            own = value + n_outputs * bin_of((<const real_t*> (column + r * by_row))[0], index)
            for o in range(n_outputs):
                out[r * n_outputs + o] += own[o]
