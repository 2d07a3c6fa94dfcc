"""Kernels from values to bins: rows coded by bin, and scores, which are looked up by bin.

A feature with k cuts has k + 1 value bins and one more for missing values.
"""
cimport numpy as cnp
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from quadboost.kernels.types cimport PREFETCH, code_t, real_t

cnp.import_array()

cdef extern from "bins.h":
    enum:
        ROWS_OF_BLOCK

    ctypedef struct BucketRule:
        int64_t first_cut
        int64_t first_place
        double low
        double scale
        double last_bucket
        int32_t shift
        int32_t n_steps

    void copy_floats(const char* column, Py_ssize_t stride, Py_ssize_t n, double* x) noexcept nogil
    void copy_doubles(const char* column, Py_ssize_t stride, Py_ssize_t n, double* x) noexcept nogil
    void plain_buckets_of(const double* x, Py_ssize_t n, const BucketRule* rule, int32_t* buckets) noexcept nogil
    void bins_of(
        const double* x, Py_ssize_t n, const BucketRule* rule, const double* cuts, const int32_t* place, int32_t* bins
    ) noexcept nogil
    void add_values(const int32_t* bins, Py_ssize_t n, const double* value, double* out) noexcept nogil


cdef extern from "trees.h":
    void reach(
        const uint32_t*, const int64_t*, const int32_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t, uint32_t*
    ) noexcept nogil
    int leaf_left(const uint32_t*, Py_ssize_t) noexcept nogil


cdef struct table_t:                 # values of rows and columns, in any layout
    const char* data
    Py_ssize_t by_row, by_column     # bytes to the next one
    bint single                      # float32, else float64


cdef table_t _table(cnp.ndarray X):
    cdef table_t table
    table.data, table.single = <const char*> cnp.PyArray_DATA(X), cnp.PyArray_TYPE(X) == cnp.NPY_FLOAT32
    table.by_row, table.by_column = X.strides[0], X.strides[1]
    return table


cdef table_t _column(cnp.ndarray values):
    cdef table_t table
    table.data, table.single = <const char*> cnp.PyArray_DATA(values), cnp.PyArray_TYPE(values) == cnp.NPY_FLOAT32
    table.by_row, table.by_column = values.strides[0], 0
    return table


def copy_columns(
    cnp.ndarray X,                   # IN  (m, d), aligned, float32 or float64, any strides
    Py_ssize_t first,
    cnp.ndarray out,                 # OUT (n, m), by rows, of the type of X: columns first .. first + n
):
    """Columns of X, one after the other."""
    cdef table_t table = _table(X)
    cdef void* columns = cnp.PyArray_DATA(out)
    cdef Py_ssize_t n = out.shape[0], m = out.shape[1]
    table.data += first * table.by_column
    with nogil:
        if table.single:
            _copy_columns(table, n, m, <float*> columns)
        else:
            _copy_columns(table, n, m, <double*> columns)


cdef void _copy_columns(table_t X, Py_ssize_t n, Py_ssize_t m, real_t* out) noexcept nogil:
    cdef Py_ssize_t start = 0, last, r, k
    while start < m:  # a few rows at a time: those of the first column are still at hand for the others
        last = min(m, start + 64)
        for r in range(last, min(m, last + 64)):
            PREFETCH(X.data + r * X.by_row)
            PREFETCH(X.data + r * X.by_row + (n - 1) * X.by_column)
        for k in range(n):
            for r in range(start, last):
                out[k * m + r] = (<const real_t*> (X.data + r * X.by_row + k * X.by_column))[0]
        start = last


cdef inline void _copy_column(table_t X, Py_ssize_t first, Py_ssize_t f, Py_ssize_t n, double* x) noexcept nogil:
    """Copy column f of the rows first..first + n."""
    cdef const char* column = X.data + first * X.by_row + f * X.by_column
    if X.single:
        copy_floats(column, X.by_row, n, x)
    else:
        copy_doubles(column, X.by_row, n, x)


cdef bint _write_codes(const int32_t* bins, Py_ssize_t n, code_t* codes, Py_ssize_t step) noexcept nogil:
    """Write a column of codes; true if one is too large for the type."""
    cdef int32_t largest = 0
    cdef Py_ssize_t r
    for r in range(n):
        largest = bins[r] if bins[r] > largest else largest
        codes[r * step] = <code_t> bins[r]
    return <uint32_t> largest > <uint32_t> (<code_t> -1)


def code_rows(
    cnp.ndarray X,                   # IN  (m, d), aligned, float32 or float64, any strides
    const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,   # IN  a `BinIndex` of bins.py
    cnp.ndarray codes,               # OUT (m, d), by rows, of one, two or four bytes
    Py_ssize_t first, Py_ssize_t last, int n_threads,
):
    """Write the bin of every value of the rows first..last; false if one was too large for the type of code."""
    cdef Py_ssize_t b, step = ROWS_OF_BLOCK, n_blocks = (last - first + step - 1) // step
    cdef int n_overflows = 0
    cdef table_t table = _table(X)
    cdef Py_ssize_t d = X.shape[1]
    cdef int size = cnp.PyArray_ITEMSIZE(codes)
    cdef char* out = <char*> cnp.PyArray_DATA(codes)
    for b in prange(n_blocks, nogil=True, schedule="static", num_threads=n_threads):
        n_overflows += _code_block(table, d, cuts, place, rule, out, size, first + b * step,
                                   min(last, first + (b + 1) * step))
    return n_overflows == 0


cdef bint _code_block(
    table_t X, Py_ssize_t d, const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,
    char* codes, int size, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef double x[ROWS_OF_BLOCK]
    cdef int32_t bins[ROWS_OF_BLOCK]
    cdef Py_ssize_t f, n = last - first
    cdef bint overflow = False
    cdef char* codes_of_f
    for f in range(d):
        _copy_column(X, first, f, n, x)
        bins_of(x, n, &rule[f], &cuts[0], &place[0], bins)
        codes_of_f = codes + (first * d + f) * size
        if size == 1:
            overflow |= _write_codes(bins, n, <uint8_t*> codes_of_f, d)
        elif size == 2:
            overflow |= _write_codes(bins, n, <uint16_t*> codes_of_f, d)
        else:
            overflow |= _write_codes(bins, n, <uint32_t*> codes_of_f, d)
    return overflow


def count_in_bins(
    cnp.ndarray values,              # IN  (n) float32 or float64, one after the other
    const int64_t[::1] mass,         # IN  (n), or None: each counts for 1
    const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,   # IN  a `BinIndex` of one feature
    int64_t[::1] out,                # INOUT (k + 2) mass up to each of k cuts, after all of them, and of missing values
    double[:, ::1] ends,             # INOUT (k + 2, 2) the least value there and the largest
):
    """Add some values to what is known between cuts."""
    cdef table_t column = _column(values)
    cdef Py_ssize_t m = values.shape[0], first = 0, n, r, b
    cdef double x[ROWS_OF_BLOCK]
    cdef int32_t bins[ROWS_OF_BLOCK]
    cdef const int64_t* of_row = NULL if mass is None or m == 0 else &mass[0]
    cdef double* end
    with nogil:
        while first < m:
            n = min(<Py_ssize_t> ROWS_OF_BLOCK, m - first)
            _copy_column(column, first, 0, n, x)
            bins_of(x, n, &rule[0], &cuts[0], &place[0], bins)
            for r in range(n):
                b = bins[r]
                end = &ends[b, 0]
                out[b] += 1 if of_row == NULL else of_row[first + r]
                end[0] = x[r] if x[r] < end[0] else end[0]  # a NaN changes nothing
                end[1] = x[r] if x[r] > end[1] else end[1]
            first += n


def take_between(
    cnp.ndarray values,              # IN  (n) float32 or float64, one after the other
    const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,   # IN  a `BinIndex` of one feature:
                                     #     before and at the end of each of several ranges, in turn
    const uint8_t[::1] is_near,      # IN  (places) whether a bucket has a value that is in a range
    int64_t[::1] rows,               # OUT (n) which values are in a range
):
    """How many values are in a range. Only those in a bucket near one are compared with its ends."""
    cdef table_t column = _column(values)
    cdef Py_ssize_t m = values.shape[0], first = 0, k = 0, n, r, n_near
    cdef double x[ROWS_OF_BLOCK]
    cdef int32_t bins[ROWS_OF_BLOCK]
    cdef int32_t near[ROWS_OF_BLOCK]
    with nogil:
        while first < m:
            n = min(<Py_ssize_t> ROWS_OF_BLOCK, m - first)
            _copy_column(column, first, 0, n, x)
            plain_buckets_of(x, n, &rule[0], bins)
            n_near = 0
            for r in range(n):  # without a branch: overwritten unless the value is near
                near[n_near] = <int32_t> r
                n_near += is_near[bins[r]]
            for r in range(n_near):
                x[r] = x[near[r]]
            bins_of(x, n_near, &rule[0], &cuts[0], &place[0], bins)
            for r in range(n_near):
                rows[k] = first + near[r]
                k += bins[r] & 1  # odd: after more beginnings than ends
            first += n
    return k


# ---------------------------------------------------------------------------------------------
# Scores: an ensemble of stumps is a sum of one step function per feature
# ---------------------------------------------------------------------------------------------

cdef class TreeValues:
    """What trees add to the scores, in the order of the trees."""
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t n_words
    cdef Py_ssize_t _n_trees, _words_each, _n_outputs
    cdef const int64_t[::1] _feature, _start, _value_start
    cdef const double[::1] _cuts
    cdef const int32_t[::1] _place
    cdef const BucketRule[::1] _rule
    cdef const uint32_t[:, ::1] _table
    cdef const double[:, ::1] _value

    def __init__(self, reach, bins, value, value_start):
        """`reach` and `bins` are a `Reach` and a `BinIndex`; `value` has a row per leaf, those of tree t from value_start[t]."""
        self._feature, self._start, self._table, self._words_each = reach
        self._cuts, self._place, self._rule = bins
        self._value, self._value_start = value, value_start
        self._n_trees, self._n_outputs = value_start.shape[0] - 1, value.shape[1]
        self.n_features, self.n_words = self._feature.shape[0], self._table.shape[1]

    cdef void add(self, table_t X, Py_ssize_t first, Py_ssize_t n, int32_t* bins, uint32_t* left, double* out) noexcept nogil:
        """Add to the scores of the rows first..first + n; `bins` has room for ROWS_OF_BLOCK for each feature."""
        cdef double x[ROWS_OF_BLOCK]
        cdef Py_ssize_t f, r, t, o, k = self._n_outputs, each = self._words_each
        cdef const double* at_leaf
        cdef double sum
        for f in range(self.n_features):
            _copy_column(X, first, self._feature[f], n, x)
            bins_of(x, n, &self._rule[f], &self._cuts[0], &self._place[0], bins + f * ROWS_OF_BLOCK)
        for r in range(n):
            reach(&self._table[0, 0], &self._start[0], bins + r, ROWS_OF_BLOCK, self.n_features, self.n_words, left)
            if k == 1:
                sum = out[r]
                for t in range(self._n_trees):
                    sum += self._value[self._value_start[t] + leaf_left(left + t * each, each), 0]
                out[r] = sum
            else:
                for t in range(self._n_trees):
                    at_leaf = &self._value[self._value_start[t] + leaf_left(left + t * each, each), 0]
                    for o in range(k):
                        out[r * k + o] += at_leaf[o]


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
    cdef tuple _trees

    def __init__(self, feature, bins, value, value_start, intercept, trees=()):
        """`bins` is a `BinIndex` of bins.py; `value` has a row per bin, then one for missing, function by function.

        `trees` are `TreeValues`, whose values are added after those of the functions.
        """
        self._trees = tuple(trees)
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
        cdef table_t table = _table(X)
        cdef double* scores = <double*> cnp.PyArray_DATA(out)
        if n_threads == 1:
            with nogil:
                for b in range(n_blocks):
                    self._score(table, b * step, min(step, m - b * step), scores)
        else:
            for b in prange(n_blocks, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
                self._score(table, b * step, min(step, m - b * step), scores)
        for trees in self._trees:
            self._add_trees(trees, table, m, scores, n_threads)
        return out

    cdef _add_trees(self, TreeValues trees, table_t table, Py_ssize_t m, double* scores, int n_threads):
        cdef Py_ssize_t step = ROWS_OF_BLOCK, n_blocks = (m + step - 1) // step, b, t, k = self.n_outputs
        cdef cnp.npy_intp shape[2]
        shape[0], shape[1] = n_threads, trees.n_features * step + 1
        cdef cnp.ndarray bins = cnp.PyArray_EMPTY(2, shape, cnp.NPY_INT32, 0)
        shape[1] = trees.n_words + 1
        cdef cnp.ndarray left = cnp.PyArray_EMPTY(2, shape, cnp.NPY_UINT32, 0)
        cdef int32_t* bin_room = <int32_t*> cnp.PyArray_DATA(bins)
        cdef uint32_t* left_room = <uint32_t*> cnp.PyArray_DATA(left)
        cdef Py_ssize_t n_bins = bins.shape[1], n_left = left.shape[1]
        if n_threads == 1:
            with nogil:
                for b in range(n_blocks):
                    trees.add(table, b * step, min(step, m - b * step), bin_room, left_room, scores + b * step * k)
        else:
            for b in prange(n_blocks, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
                t = threadid()
                trees.add(table, b * step, min(step, m - b * step), bin_room + t * n_bins, left_room + t * n_left,
                          scores + b * step * k)

    cdef void _score(self, table_t X, Py_ssize_t first, Py_ssize_t n, double* scores) noexcept nogil:
        """The scores of the rows first..first + n, at most ROWS_OF_BLOCK."""
        cdef double x[ROWS_OF_BLOCK]
        cdef int32_t bins[ROWS_OF_BLOCK]
        cdef Py_ssize_t s, r, o
        cdef double* out = scores + first * self.n_outputs
        for r in range(n):
            for o in range(self.n_outputs):
                out[r * self.n_outputs + o] = self._intercept[o]
        for s in range(self.n_features):
            _copy_column(X, first, self._feature[s], n, x)
            bins_of(x, n, &self._rule[s], &self._cuts[0], &self._place[0], bins)
            self._add(bins, n, &self._value[self._value_start[s], 0], out)

    cdef void _add(self, const int32_t* bins, Py_ssize_t n, const double* value, double* out) noexcept nogil:
        """Add one step function to the scores of n rows."""
        cdef Py_ssize_t r, o
        cdef const double* in_bin
        if self.n_outputs == 1:
            add_values(bins, n, value, out)
        else:
            for r in range(n):
                in_bin = value + self.n_outputs * bins[r]
                for o in range(self.n_outputs):
                    out[r * self.n_outputs + o] += in_bin[o]
