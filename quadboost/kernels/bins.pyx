"""Kernels from values to bins: where features are cut, rows coded by bin, and scores, which are looked up by bin.

A feature with k cuts has k + 1 value bins and one more for missing values. Python allocates, the kernels fill;
arguments are marked IN / OUT. Kernels trust what they are given (the callers check) and hold no policy.
"""
cimport numpy as cnp
from cython.parallel cimport prange, threadid
from libc.math cimport ceil
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


def distinct_runs(
    cnp.ndarray values,              # IN  (n) ascending, float32 or float64, one after the other
    int64_t[::1] before,             # OUT (n + 1) how many values come before each distinct one, and in all
):
    """How many distinct values there are."""
    cdef const void* data = cnp.PyArray_DATA(values)
    cdef Py_ssize_t n = values.shape[0]
    if cnp.PyArray_TYPE(values) == cnp.NPY_FLOAT32:
        return _distinct_runs(<const float*> data, n, &before[0])
    return _distinct_runs(<const double*> data, n, &before[0])


cdef Py_ssize_t _distinct_runs(const real_t* values, Py_ssize_t n, int64_t* before) noexcept nogil:
    cdef Py_ssize_t i, k = 0
    before[0] = 0
    for i in range(1, n):
        before[k + 1] = i  # without a branch: overwritten until the value changes
        k += values[i] != values[i - 1]
    before[k + 1] = n
    return k + 1


cdef struct mass_t:                  # a column as the mass of its values, one after the other; borders are sums of mass
    const int64_t* before            # (n + 1) mass of the atoms before each atom
    const uint8_t* is_dense          # (n) whether there are values within the atom, with borders anywhere
    Py_ssize_t n
    const int64_t* alone_begin       # (n_alone) borders of the values that have a bin of their own
    const int64_t* alone_end
    Py_ssize_t n_alone


cdef inline mass_t _column(
    const int64_t[::1] before, const uint8_t[::1] is_dense, const int64_t[:, ::1] alone
) noexcept nogil:
    cdef mass_t column
    column.before, column.is_dense, column.n = &before[0], &is_dense[0], before.shape[0] - 1
    column.n_alone = alone.shape[1]
    column.alone_begin = column.alone_end = NULL
    if column.n_alone:
        column.alone_begin, column.alone_end = &alone[0, 0], &alone[1, 0]
    return column


cdef inline Py_ssize_t _first_at_least(const int64_t* values, Py_ssize_t n, int64_t wanted) noexcept nogil:
    """The first place of an ascending array whose value is not below the wanted one."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t _atom_at(const mass_t* column, int64_t mass) noexcept nogil:
    """The atom that holds what comes after that mass; none has a mass below 1."""
    if mass < column.n and column.before[mass] == mass:  # all up to there have a mass of 1
        return mass
    return _first_at_least(column.before, column.n + 1, mass + 1) - 1


cdef inline int64_t _border_until(const mass_t* column, int64_t mass) noexcept nogil:
    """The last border up to that mass."""
    cdef Py_ssize_t atom
    if mass >= column.before[column.n]:
        return column.before[column.n]
    atom = _atom_at(column, mass)
    return mass if column.is_dense[atom] else column.before[atom]


cdef inline int64_t _border_from(const mass_t* column, int64_t mass) noexcept nogil:
    """The first border from that mass on."""
    cdef Py_ssize_t atom
    if mass <= 0:
        return 0
    if mass > column.before[column.n]:
        return column.before[column.n]
    atom = _atom_at(column, mass - 1)
    return mass if column.is_dense[atom] else column.before[atom + 1]


cdef int64_t _furthest_end(const mass_t* column, int64_t begin, int64_t most) noexcept nogil:
    """Where a bin that begins there must end: at a value that stands alone, or when it has `most` mass."""
    cdef Py_ssize_t a = _first_at_least(column.alone_begin, column.n_alone, begin)
    cdef int64_t end
    if a < column.n_alone and column.alone_begin[a] == begin:
        return column.alone_end[a]
    end = _border_until(column, begin + most)
    if a < column.n_alone:
        end = min(end, column.alone_begin[a])
    return end if end > begin else _border_from(column, begin + 1)


cdef int64_t _furthest_begin(const mass_t* column, int64_t end, int64_t most) noexcept nogil:
    """Where a bin that ends there must begin."""
    cdef Py_ssize_t a = _first_at_least(column.alone_begin, column.n_alone, end) - 1
    cdef int64_t begin
    if a >= 0 and column.alone_end[a] == end:
        return column.alone_begin[a]
    begin = _border_from(column, end - most)
    if a >= 0:
        begin = max(begin, column.alone_end[a])
    return begin if begin < end else _border_until(column, end - 1)


cdef bint _fits(const mass_t* column, Py_ssize_t n_bins, int64_t most) noexcept nogil:
    """Whether n_bins are enough when no bin of several values may have more than `most` mass."""
    cdef int64_t begin = 0, total = column.before[column.n]
    cdef Py_ssize_t used = 0
    while begin < total and used <= n_bins:
        begin = _furthest_end(column, begin, most)
        used += 1
    return used <= n_bins


cdef int64_t _least_most(const mass_t* column, Py_ssize_t n_bins, int64_t fair) noexcept nogil:
    """The smallest mass that fits; usually it is near the fair share of a bin."""
    cdef int64_t low = 0, high = fair, step = 1, middle
    while not _fits(column, n_bins, high):
        low = high + 1
        high += step
        step *= 2
    step = 1
    while high - step >= low and _fits(column, n_bins, high - step):
        high -= step
        step *= 2
    low = max(low, high - step + 1)
    while low < high:
        middle = low + (high - low) // 2
        if _fits(column, n_bins, middle):
            high = middle
        else:
            low = middle + 1
    return high


def quantile_ends(
    const int64_t[::1] before,       # IN  (n + 1) mass of the atoms before each atom: a value, or several neighbours
    const uint8_t[::1] is_dense,     # IN  (n) whether the atom has several values; these are taken to lie densely
    const int64_t[:, ::1] alone,     # IN  (2, a) mass before and until the values that have a bin of their own;
                                     #     n_bins must suffice for that
    Py_ssize_t n_bins,
    int64_t[::1] latest,             # OUT (n_bins + 1) with b bins left, a bin must reach at least as far as latest[b]
    int64_t[::1] out,                # OUT (n_bins) mass until the end of each bin
):
    """Divide a column into bins of nearly equal mass; returns how many bins, and the most mass of one of several values.

    No bin of several values is heavier than it must be; within that, each takes its fair share of what is left.
    """
    cdef mass_t column = _column(before, is_dense, alone)
    cdef Py_ssize_t b = 0, a = 0, shared = n_bins - column.n_alone
    cdef int64_t total = before[column.n], mass = total, begin = 0, end, most, used, previous
    cdef double fair
    for b in range(column.n_alone):
        mass -= column.alone_end[b] - column.alone_begin[b]
    with nogil:
        most = _least_most(&column, n_bins, mass // max(shared, 1))
        latest[0] = total
        for b in range(n_bins):
            latest[b + 1] = _furthest_begin(&column, latest[b], most) if latest[b] > 0 else 0
        b = 0
        while begin < total:
            end = _furthest_end(&column, begin, most)
            if a < column.n_alone and column.alone_begin[a] == begin:
                a += 1
            else:
                fair = begin + <double> mass / shared if shared > 1 else total
                used = _border_from(&column, <int64_t> ceil(fair))
                previous = _border_until(&column, used - 1)
                if previous > begin and fair - previous <= used - fair:
                    used = previous
                used = max(used, latest[n_bins - b - 1])
                end = min(end, used if used > begin else _border_from(&column, begin + 1))
                mass -= end - begin
                shared -= 1
            out[b] = end
            b += 1
            begin = end
    return b, most


def furthest_ends(
    const int64_t[::1] before, const uint8_t[::1] is_dense, const int64_t[:, ::1] alone,   # IN  as above
    int64_t most,
    int64_t[::1] out,                # OUT the ends of the first bins, when each has as much as it may
):
    """Returns how many bins there are, or were looked at."""
    cdef mass_t column = _column(before, is_dense, alone)
    cdef int64_t end = 0
    cdef Py_ssize_t b = 0
    with nogil:
        while end < before[column.n] and b < out.shape[0]:
            end = out[b] = _furthest_end(&column, end, most)
            b += 1
    return b


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
    cdef char* own
    for f in range(d):
        _copy_column(X, first, f, n, x)
        bins_of(x, n, &rule[f], &cuts[0], &place[0], bins)
        own = codes + (first * d + f) * size
        if size == 1:
            overflow |= _write_codes(bins, n, <uint8_t*> own, d)
        elif size == 2:
            overflow |= _write_codes(bins, n, <uint16_t*> own, d)
        else:
            overflow |= _write_codes(bins, n, <uint32_t*> own, d)
    return overflow


def take_between(
    cnp.ndarray values,              # IN  (n) float32 or float64, one after the other
    const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,   # IN  a `BinIndex` of one feature:
                                     #     before and at the end of each of several ranges, in turn
    int64_t[::1] rows,               # OUT (n) which values are in a range
):
    """How many values are in a range."""
    cdef const char* data = <const char*> cnp.PyArray_DATA(values)
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(values), m = values.shape[0], first = 0, k = 0, n, r
    cdef double x[ROWS_OF_BLOCK]
    cdef int32_t bins[ROWS_OF_BLOCK]
    with nogil:
        while first < m:
            n = min(<Py_ssize_t> ROWS_OF_BLOCK, m - first)
            if size == sizeof(float):
                copy_floats(data + first * size, size, n, x)
            else:
                copy_doubles(data + first * size, size, n, x)
            bins_of(x, n, &rule[0], &cuts[0], &place[0], bins)
            for r in range(n):
                rows[k] = first + r  # without a branch: overwritten unless the value is in a range
                k += bins[r] & (x[r] == x[r])  # odd: after more beginnings than ends
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
        cdef const double* own
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
                    own = &self._value[self._value_start[t] + leaf_left(left + t * each, each), 0]
                    for o in range(k):
                        out[r * k + o] += own[o]


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
        cdef int32_t* own_bins = <int32_t*> cnp.PyArray_DATA(bins)
        cdef uint32_t* own_left = <uint32_t*> cnp.PyArray_DATA(left)
        cdef Py_ssize_t n_bins = bins.shape[1], n_left = left.shape[1]
        if n_threads == 1:
            with nogil:
                for b in range(n_blocks):
                    trees.add(table, b * step, min(step, m - b * step), own_bins, own_left, scores + b * step * k)
        else:
            for b in prange(n_blocks, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
                t = threadid()
                trees.add(table, b * step, min(step, m - b * step), own_bins + t * n_bins, own_left + t * n_left,
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
        cdef const double* own
        if self.n_outputs == 1:
            add_values(bins, n, value, out)
        else:
            for r in range(n):
                own = value + self.n_outputs * bins[r]
                for o in range(self.n_outputs):
                    out[r * self.n_outputs + o] += own[o]
