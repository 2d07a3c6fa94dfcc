"""Kernels of training on plain arrays: code rows into bins, count, boost rounds.

Python allocates, the kernels fill; arguments are marked IN / OUT. Kernels trust what they
are given (the callers check) and hold no policy. Every sum over rows is a sum of integers,
so that neither the number of threads nor the order of rows can change a bit of a result.
"""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.math cimport ceil
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.string cimport memset

from quadboost._bins cimport ROWS_OF_BLOCK, BucketRule, bins_of, copy_doubles, copy_floats

import numpy as np

cnp.import_array()

cdef extern from *:
    """
    #ifdef _OPENMP
    #define QUADBOOST_OPENMP 1
    #else
    #define QUADBOOST_OPENMP 0
    #endif
    #if defined(__GNUC__) || defined(__clang__)
    #define PREFETCH(address) __builtin_prefetch(address)
    #else
    #define PREFETCH(address)
    #endif
    """
    int QUADBOOST_OPENMP
    void PREFETCH(const void*) noexcept nogil

cdef extern from "_rounds.h":
    void move_counts(double*, const int32_t*, const double*, double, double, Py_ssize_t) noexcept nogil
    void move_sums(double*, const double*, const double*, double, double, Py_ssize_t) noexcept nogil
    double move_and_rate_counts(
        double*, const int32_t*, const double*, double, double, const double*, const double*, const double*,
        const double*, double, double, double*, Py_ssize_t) noexcept nogil
    double move_and_rate_sums(
        double*, const double*, const double*, double, double, const double*, const double*, const double*,
        const double*, double, double, double*, Py_ssize_t) noexcept nogil

cdef extern from "_solve.h":
    void solve_semidefinite(double*, double*, Py_ssize_t, double) noexcept nogil

ctypedef fused real_t:
    float
    double

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

# Counts of rows fit in 32 bits, which halves the memory traffic of a round. Weights are rounded so that their
# sums are exact in doubles; targets times weights are fixed-point numbers of 64 bits.
ctypedef fused count_t:
    int32_t
    double

ctypedef fused sum_t:
    int64_t
    double

ctypedef fused exact_t:
    int32_t
    int64_t
    double

cdef enum:
    BLOCK = 256  # voters per block of a round: its scratch stays in the first-level cache
    VOTERS_FOR_THREADS = 500000  # below which a second thread costs more than it brings
    MOST_PARTS = 64
    LINE = 16  # counts in a cache line
    AHEAD = 16  # rows that are fetched before they are counted


def openmp_enabled() -> bool:
    """Whether the kernels were compiled with OpenMP."""
    return bool(QUADBOOST_OPENMP)


# ---------------------------------------------------------------------------------------------
# Bins: a feature with k cuts has k + 1 value bins and one more for missing values
# ---------------------------------------------------------------------------------------------

def copy_columns(
    const real_t[:, :] X,            # IN  (m, d), any strides
    Py_ssize_t first,
    real_t[:, ::1] out,              # OUT (n, m) columns first .. first + n
):
    """Columns of X, one after the other."""
    cdef Py_ssize_t start = 0, last, r, k, m = X.shape[0], n = out.shape[0]
    with nogil:
        while start < m:  # a few rows at a time: those of the first column are still at hand for the others
            last = min(m, start + 64)
            for r in range(last, min(m, last + 64)):
                PREFETCH(&X[r, first])
                PREFETCH(&X[r, first + n - 1])
            for k in range(n):
                for r in range(start, last):
                    out[k, r] = X[r, first + k]
            start = last


def distinct_runs(
    const real_t[::1] values,        # IN  (n) ascending
    int64_t[::1] before,             # OUT (n + 1) how many values come before each distinct one, and in all
):
    """How many distinct values there are."""
    cdef Py_ssize_t i, k = 0, n = values.shape[0]
    with nogil:
        before[0] = 0
        for i in range(1, n):
            before[k + 1] = i  # without a branch: overwritten until the value changes
            k += values[i] != values[i - 1]
        before[k + 1] = n
    return k + 1


cdef inline Py_ssize_t _first_at_least(const int64_t[::1] values, int64_t wanted) noexcept nogil:
    """The first place of an ascending array whose value is not below the wanted one."""
    cdef Py_ssize_t low = 0, high = values.shape[0], middle
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t _value_at(const int64_t[::1] before, int64_t mass) noexcept nogil:
    """The first value before which there is at least that mass. No value has a mass below 1."""
    if 0 <= mass < before.shape[0] and before[mass] == mass:  # all up to there have a mass of 1
        return mass
    return _first_at_least(before, mass)


cdef Py_ssize_t _furthest_end(
    const int64_t[::1] before, const int64_t[::1] alone, Py_ssize_t first, int64_t most
) noexcept nogil:
    """Where a bin that begins at value `first` must end: at a value that stands alone, or when it has `most` mass."""
    cdef Py_ssize_t a = _first_at_least(alone, first), end
    if a < alone.shape[0] and alone[a] == first:
        return first + 1
    end = _value_at(before, before[first] + most + 1) - 1
    if a < alone.shape[0]:
        end = min(end, <Py_ssize_t> alone[a])
    return max(end, first + 1)


cdef Py_ssize_t _furthest_begin(
    const int64_t[::1] before, const int64_t[::1] alone, Py_ssize_t end, int64_t most
) noexcept nogil:
    """Where a bin that ends before value `end` must begin."""
    cdef Py_ssize_t a = _first_at_least(alone, end) - 1, begin
    if a >= 0 and alone[a] == end - 1:
        return end - 1
    begin = _value_at(before, before[end] - most)
    if a >= 0:
        begin = max(begin, <Py_ssize_t> alone[a] + 1)
    return min(begin, end - 1)


cdef bint _fits(const int64_t[::1] before, const int64_t[::1] alone, Py_ssize_t n_bins, int64_t most) noexcept nogil:
    """Whether n_bins are enough when no bin of several values may have more than `most` mass."""
    cdef Py_ssize_t first = 0, n = before.shape[0] - 1, used = 0
    while first < n and used <= n_bins:
        first = _furthest_end(before, alone, first, most)
        used += 1
    return used <= n_bins


cdef int64_t _least_most(
    const int64_t[::1] before, const int64_t[::1] alone, Py_ssize_t n_bins, int64_t fair
) noexcept nogil:
    """The smallest mass that fits; usually it is near the fair share of a bin."""
    cdef int64_t low = 0, high = fair, step = 1, middle
    while not _fits(before, alone, n_bins, high):
        low = high + 1
        high += step
        step *= 2
    step = 1
    while high - step >= low and _fits(before, alone, n_bins, high - step):
        high -= step
        step *= 2
    low = max(low, high - step + 1)
    while low < high:
        middle = low + (high - low) // 2
        if _fits(before, alone, n_bins, middle):
            high = middle
        else:
            low = middle + 1
    return high


def quantile_cuts(
    const int64_t[::1] before,       # IN  (n + 1) mass of the values before each value
    const int64_t[::1] alone,        # IN  values that have a bin of their own; n_bins must suffice for that
    Py_ssize_t n_bins,
    int64_t[::1] latest,             # scratch (n_bins + 1)
    int64_t[::1] out,                # OUT (n_bins) one past the last value of each bin
):
    """Divide values into bins of nearly equal mass; returns how many bins.

    No bin of several values is heavier than it must be; within that, each takes its fair share of what is left.
    """
    cdef Py_ssize_t n = before.shape[0] - 1, first, end, b = 0, used = 0, a = 0, shared = n_bins - alone.shape[0]
    cdef int64_t most, mass = before[n]
    cdef double fair
    for first in range(alone.shape[0]):
        mass -= before[alone[first] + 1] - before[alone[first]]
    with nogil:
        most = _least_most(before, alone, n_bins, mass // max(shared, 1))
        latest[0] = n  # with b bins left, a bin must reach at least as far as latest[b]
        for b in range(n_bins):
            latest[b + 1] = _furthest_begin(before, alone, latest[b], most) if latest[b] > 0 else 0
        first, b = 0, 0
        while first < n:
            end = _furthest_end(before, alone, first, most)
            if a < alone.shape[0] and alone[a] == first:
                a += 1
            else:
                fair = before[first] + <double> mass / shared if shared > 1 else before[n]
                used = _value_at(before, <int64_t> ceil(fair))
                if used - 1 > first and fair - before[used - 1] <= before[used] - fair:
                    used -= 1
                end = min(end, max(used, <Py_ssize_t> latest[n_bins - b - 1], first + 1))
                mass -= before[end] - before[first]
                shared -= 1
            out[b] = end
            b += 1
            first = end
    return b


cdef bint _code_block(
    const real_t[:, :] X, const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,
    code_t[:, ::1] codes, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef double x[ROWS_OF_BLOCK]
    cdef int32_t bins[ROWS_OF_BLOCK]
    cdef int32_t largest = 0
    cdef Py_ssize_t f, r, n = last - first
    for f in range(X.shape[1]):
        if real_t is float:
            copy_floats(<const char*> &X[first, f], X.strides[0], n, x)
        else:
            copy_doubles(<const char*> &X[first, f], X.strides[0], n, x)
        bins_of(x, n, &rule[f], &cuts[0], &place[0], bins)
        for r in range(n):
            largest = bins[r] if bins[r] > largest else largest
            codes[first + r, f] = <code_t> bins[r]
    return <uint32_t> largest > <uint32_t> (<code_t> -1)


def code_rows(
    const real_t[:, :] X,            # IN  (m, d), any strides
    const double[::1] cuts, const int32_t[::1] place, const BucketRule[::1] rule,   # IN  a `BinIndex` of bins.py
    code_t[:, ::1] codes,            # OUT (m, d)
    Py_ssize_t first, Py_ssize_t last, int n_threads,
):
    """Write the bin of every value of the rows first..last; false if one was too large for the type of code."""
    cdef Py_ssize_t b, step = ROWS_OF_BLOCK, n_blocks = (last - first + step - 1) // step
    cdef int n_overflows = 0
    for b in prange(n_blocks, nogil=True, schedule="static", num_threads=n_threads):
        n_overflows += _code_block(X, cuts, place, rule, codes, first + b * step, min(last, first + (b + 1) * step))
    return n_overflows == 0


cdef void _bin_sums_of(
    const code_t[:, ::1] codes, const sum_t[::1] value, const int64_t[::1] bin_start, sum_t[::1] out,
    Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef Py_ssize_t r, f
    for r in range(codes.shape[0]):
        for f in range(first, last):
            out[bin_start[f] + codes[r, f]] += value[r]


def bin_sums(
    const code_t[:, ::1] codes,      # IN  (m, d)
    const sum_t[::1] value,          # IN  (m)
    const int64_t[::1] bin_start,    # IN  (d + 1)
    sum_t[::1] out,                  # OUT (bins of all features) sum of value in each bin; zeroed by the caller
    int n_threads,
):
    cdef Py_ssize_t t, d = codes.shape[1]
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        _bin_sums_of(codes, value, bin_start, out, t * d // n_threads, (t + 1) * d // n_threads)


def sort_rows(
    const code_t[:, ::1] codes,      # IN  (m, d)
    Py_ssize_t f,
    int64_t[:, ::1] count,           # scratch (n_threads, bins of f)
    code_t[::1] own,                 # scratch (m)
    int64_t[::1] bin_end,            # OUT (bins of f) where each bin ends in `order`
    int32_t[::1] order,              # OUT (m) rows by their bin of feature f, in order within a bin
    int n_threads,
):
    cdef Py_ssize_t t, b, m = codes.shape[0]
    cdef int64_t here = 0, n
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        _count_own(codes, f, own, count[t], t * m // n_threads, (t + 1) * m // n_threads)
    for b in range(bin_end.shape[0]):
        for t in range(n_threads):
            n = count[t, b]
            count[t, b] = here
            here += n
        bin_end[b] = here
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        _place_own(own, count[t], order, t * m // n_threads, (t + 1) * m // n_threads)


cdef void _count_own(
    const code_t[:, ::1] codes, Py_ssize_t f, code_t[::1] own, int64_t[::1] count, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    cdef Py_ssize_t r
    memset(&count[0], 0, count.shape[0] * sizeof(int64_t))
    for r in range(first, last):
        own[r] = codes[r, f]
        count[own[r]] += 1


cdef void _place_own(
    const code_t[::1] own, int64_t[::1] here, int32_t[::1] order, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(first, last):
        order[here[own[r]]] = <int32_t> r
        here[own[r]] += 1


# ---------------------------------------------------------------------------------------------
# Voters: from sums per bin to sums per voter
#   threshold voter i: -1 on bins 0..i, +1 on bins i+1..k;  level voter i: +1 on bin i+1, else -1;
#   both 0 on the bin of missing values; missing voter: +1 there, else -1
# ---------------------------------------------------------------------------------------------

cdef inline void _voters_of_bins(
    const exact_t* bins, Py_ssize_t n_cuts, bint is_level, bint has_missing, exact_t factor, exact_t* out
) noexcept nogil:
    """Add factor times the sum of value * h over rows, for every voter of a feature, from sums of value per bin."""
    cdef Py_ssize_t i
    cdef exact_t present = 0, below = 0
    for i in range(n_cuts + 1):
        present += bins[i]
    if is_level:
        for i in range(n_cuts):
            out[i] += factor * (2 * bins[i + 1] - present)
    else:
        for i in range(n_cuts):
            below += bins[i]
            out[i] += factor * (present - 2 * below)
    if has_missing:
        out[n_cuts] += factor * (bins[n_cuts + 1] - present)


cdef void _add_voter_sums(
    const exact_t* bins, const int64_t[::1] bin_start, const int64_t[::1] voter_start, const uint8_t[::1] is_level,
    exact_t factor, exact_t* out, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t f, d = is_level.shape[0]
    if n_threads == 1 or voter_start[d] < VOTERS_FOR_THREADS:
        for f in range(d):
            _add_voter_sums_of(bins, bin_start, voter_start, is_level, factor, out, f)
    else:
        for f in prange(d, schedule="dynamic", num_threads=n_threads):
            _add_voter_sums_of(bins, bin_start, voter_start, is_level, factor, out, f)


cdef void _add_voter_sums_of(
    const exact_t* bins, const int64_t[::1] bin_start, const int64_t[::1] voter_start, const uint8_t[::1] is_level,
    exact_t factor, exact_t* out, Py_ssize_t f,
) noexcept nogil:
    cdef Py_ssize_t n_cuts = bin_start[f + 1] - bin_start[f] - 2, n_voters = voter_start[f + 1] - voter_start[f]
    if n_voters > 0:
        _voters_of_bins(bins + bin_start[f], n_cuts, is_level[f], n_voters > n_cuts, factor, out + voter_start[f])


def add_voter_sums(
    const sum_t[::1] bins,           # IN  sums per bin, all features
    const int64_t[::1] bin_start, const int64_t[::1] voter_start, const uint8_t[::1] is_level,
    sum_t[::1] out,                  # IN/OUT (K)
):
    """Add sums per voter."""
    if out.shape[0] > 0:
        _add_voter_sums(&bins[0], bin_start, voter_start, is_level, <sum_t> 1, &out[0], 1)


# ---------------------------------------------------------------------------------------------
# Gram columns
# ---------------------------------------------------------------------------------------------

cdef inline const code_t* _row_soon(const code_t* codes, Py_ssize_t d, const int32_t* rows, Py_ssize_t i) noexcept nogil:
    """Row rows[i], while the one that is needed AHEAD rows later, with all of its bytes, is on its way."""
    cdef const code_t* later = codes + rows[i + AHEAD] * d
    PREFETCH(later)
    PREFETCH(later + d - 1)
    return codes + rows[i] * d


cdef void _count_rows(
    const code_t* codes, Py_ssize_t d, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t* bin_start,
    const int64_t* features, Py_ssize_t n_features, count_t* bins, Py_ssize_t n_bins,
) noexcept nogil:
    """Count rows in the bins of the given features."""
    cdef Py_ssize_t i = 0, f, k
    cdef const code_t* r0
    cdef const code_t* r1
    cdef const code_t* r2
    cdef const code_t* r3
    cdef count_t w0 = 1, w1 = 1, w2 = 1, w3 = 1
    cdef count_t* own
    memset(bins, 0, n_bins * sizeof(count_t))
    while i + 4 + AHEAD <= n:  # four rows at a time: a feature is looked up once for all
        r0, r1 = _row_soon(codes, d, rows, i), _row_soon(codes, d, rows, i + 1)
        r2, r3 = _row_soon(codes, d, rows, i + 2), _row_soon(codes, d, rows, i + 3)
        if mass != NULL:
            w0, w1, w2, w3 = mass[rows[i]], mass[rows[i + 1]], mass[rows[i + 2]], mass[rows[i + 3]]
        for k in range(n_features):
            f = features[k]
            own = bins + bin_start[f]
            own[r0[f]] += w0
            own[r1[f]] += w1
            own[r2[f]] += w2
            own[r3[f]] += w3
        i += 4
    while i < n:
        r0 = codes + rows[i] * d
        if mass != NULL:
            w0 = mass[rows[i]]
        for k in range(n_features):
            f = features[k]
            bins[bin_start[f] + r0[f]] += w0
        i += 1


cdef class RowCounter:
    """Joint counts of some rows with every bin of every feature, as products with every voter.

    A class, because what does not change is looked at once: a column of the Gram matrix takes microseconds.
    Not to be shared by threads: its scratch memory is its own.
    """
    cdef cnp.ndarray _codes, _mass, _scratch
    cdef const int64_t[::1] _bin_start, _voter_start, _features
    cdef const uint8_t[::1] _is_level
    cdef bint _counts
    cdef int _n_threads

    def __init__(self, cnp.ndarray codes, cnp.ndarray mass, bin_start, voter_start, is_level, int n_threads, bint counts):
        """`mass` may be None where `counts` is true: every row counts once, in int32; else sums are float64."""
        self._codes, self._mass, self._counts, self._n_threads = codes, mass, counts, n_threads
        self._bin_start, self._voter_start, self._is_level = bin_start, voter_start, is_level
        self._features = np.arange(codes.shape[1])
        self._scratch = np.empty((n_threads, bin_start[bin_start.shape[0] - 1]), dtype=np.int32 if counts else np.float64)

    def add(self, cnp.ndarray rows, int factor, cnp.ndarray column, int n_threads):
        """Add factor times the products of every voter with one that is 1 on the given rows and 0 on the others."""
        cdef cnp.ndarray codes = self._codes
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef Py_ssize_t n = rows.shape[0], d = codes.shape[1]
        cdef int32_t* counts = <int32_t*> cnp.PyArray_DATA(column)
        cdef double* sums = <double*> cnp.PyArray_DATA(column)
        cdef int size = cnp.PyArray_ITEMSIZE(codes)
        with nogil:
            if size == 1:
                self._count(<const uint8_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            elif size == 2:
                self._count(<const uint16_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            else:
                self._count(<const uint32_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            if self._counts:
                _add_voter_sums(<const int32_t*> cnp.PyArray_DATA(self._scratch), self._bin_start, self._voter_start,
                                self._is_level, <int32_t> factor, counts, self._n_threads)
            else:
                _add_voter_sums(<const double*> cnp.PyArray_DATA(self._scratch), self._bin_start, self._voter_start,
                                self._is_level, <double> factor, sums, self._n_threads)

    def add_bins(self, cnp.ndarray bins, int factor, cnp.ndarray column):
        """The same from sums per bin that were counted before."""
        with nogil:
            if self._counts:
                _add_voter_sums(<const int32_t*> cnp.PyArray_DATA(bins), self._bin_start, self._voter_start,
                                self._is_level, <int32_t> factor, <int32_t*> cnp.PyArray_DATA(column), self._n_threads)
            else:
                _add_voter_sums(<const double*> cnp.PyArray_DATA(bins), self._bin_start, self._voter_start,
                                self._is_level, <double> factor, <double*> cnp.PyArray_DATA(column), self._n_threads)

    def tabulate(
        self, cnp.ndarray rows, const int64_t[::1] bin_end, const int64_t[::1] features, cnp.ndarray table, int n_threads
    ):
        """Fill a table, a row per bin of a feature: sums per bin of the given features over the rows of that bin."""
        cdef cnp.ndarray codes = self._codes
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef Py_ssize_t d = codes.shape[1], n_bins = table.shape[1]
        cdef int size = cnp.PyArray_ITEMSIZE(codes)
        with nogil:
            if self._counts:
                _tabulate(cnp.PyArray_DATA(codes), size, d, <const int32_t*> NULL, order, bin_end, &self._bin_start[0],
                          features, <int32_t*> cnp.PyArray_DATA(table), n_bins, n_threads)
            else:
                _tabulate(cnp.PyArray_DATA(codes), size, d, <const double*> cnp.PyArray_DATA(self._mass), order, bin_end,
                          &self._bin_start[0], features, <double*> cnp.PyArray_DATA(table), n_bins, n_threads)

    cdef void _count(self, const code_t* codes, Py_ssize_t d, const int32_t* rows, Py_ssize_t n, int n_threads) noexcept nogil:
        if self._counts:
            _count_in_parallel(codes, d, <const int32_t*> NULL, rows, n, &self._bin_start[0], &self._features[0],
                               <int32_t*> cnp.PyArray_DATA(self._scratch), self._scratch.shape[1], n_threads)
        else:
            _count_in_parallel(codes, d, <const double*> cnp.PyArray_DATA(self._mass), rows, n, &self._bin_start[0],
                               &self._features[0], <double*> cnp.PyArray_DATA(self._scratch), self._scratch.shape[1], n_threads)


cdef void _tabulate(
    const void* codes, int size, Py_ssize_t d, const count_t* mass, const int32_t* rows, const int64_t[::1] bin_end,
    const int64_t* bin_start, const int64_t[::1] features, count_t* table, Py_ssize_t n_bins, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t b, first, last, n = features.shape[0]
    cdef const int64_t* chosen = &features[0]
    for b in prange(bin_end.shape[0], schedule="dynamic", num_threads=n_threads):
        first = bin_end[b - 1] if b > 0 else 0
        last = bin_end[b]
        if size == 1:
            _count_rows(<const uint8_t*> codes, d, mass, rows + first, last - first, bin_start, chosen, n,
                        table + b * n_bins, n_bins)
        elif size == 2:
            _count_rows(<const uint16_t*> codes, d, mass, rows + first, last - first, bin_start, chosen, n,
                        table + b * n_bins, n_bins)
        else:
            _count_rows(<const uint32_t*> codes, d, mass, rows + first, last - first, bin_start, chosen, n,
                        table + b * n_bins, n_bins)


cdef void _copy_transposed(
    const count_t[:, ::1] of_g, Py_ssize_t first_f, Py_ssize_t first_g, count_t[:, ::1] of_f, Py_ssize_t start
) noexcept nogil:
    cdef Py_ssize_t a, b, n_g = of_g.shape[0], end = min(of_f.shape[0], start + LINE)
    cdef count_t above
    for b in range(n_g):
        for a in range(start, end):
            above = of_g[b - 1, first_f + a] if 0 < b < n_g - 1 else 0
            of_f[a, first_g + b] = of_g[b, first_f + a] - above


def copy_transposed(
    const count_t[:, ::1] of_g,      # IN  (bins of g, all bins) running sums down the value bins
    Py_ssize_t first_f,              # IN  where the bins of f begin
    Py_ssize_t first_g,              # IN  where the bins of g begin
    count_t[:, ::1] of_f,            # OUT (bins of f, all bins) sums: the columns of g are written
    int n_threads,
):
    """The joint counts of f and g from those of g and f."""
    cdef Py_ssize_t k, n_lines = (of_f.shape[0] + LINE - 1) // LINE
    for k in prange(n_lines, nogil=True, schedule="static", num_threads=n_threads):
        _copy_transposed(of_g, first_f, first_g, of_f, k * LINE)


cdef void _run_down(count_t[:, ::1] table, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t b, i
    for b in range(1, table.shape[0] - 1):
        for i in range(first, last):
            table[b, i] += table[b - 1, i]


def run_down(count_t[:, ::1] table, int n_threads):
    """Make the sums of all bins but the last, which is for missing values, running sums."""
    cdef Py_ssize_t t, n = table.shape[1]
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        _run_down(table, t * n // n_threads, (t + 1) * n // n_threads)


cdef void _count_in_parallel(
    const code_t* codes, Py_ssize_t d, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t* bin_start,
    const int64_t* features, count_t* bins, Py_ssize_t n_bins, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t t, b, first
    if n_threads == 1:
        _count_rows(codes, d, mass, rows, n, bin_start, features, d, bins, n_bins)
        return
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        first = t * n // n_threads
        _count_rows(codes, d, mass, rows + first, (t + 1) * n // n_threads - first, bin_start, features, d,
                    bins + t * n_bins, n_bins)
    for t in range(1, n_threads):
        for b in range(n_bins):
            bins[b] += bins[t * n_bins + b]


cdef double _dot(const double* x, const double* y, Py_ssize_t n) noexcept nogil:
    # Four partial sums in a fixed order: fast, and the same bits for any number of threads.
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
        i += 4
    while i < n:
        s0 += x[i] * y[i]
        i += 1
    return (s0 + s1) + (s2 + s3)


def matrix_products(
    const double[::1, :] H,          # IN  (m, K) outputs of the voters
    const double[::1] value,         # IN  (m)
    double[::1] out,                 # OUT (K) sum over rows of H * value
    int n_threads,
):
    cdef Py_ssize_t j
    for j in prange(H.shape[1], nogil=True, schedule="static", num_threads=n_threads):
        out[j] = _dot(&H[0, j], &value[0], H.shape[0])


def solve(
    double[:, ::1] gram,             # IN  (n, n) positive semidefinite; overwritten
    double[::1] x,                   # IN/OUT (n) the right-hand side, then the solution
    double least,                    # what is left of a diagonal element and is not above this is rounding
):
    """Solve gram x = b. An unknown that others determine up to rounding becomes 0."""
    if x.shape[0] > 0:
        with nogil:
            solve_semidefinite(&gram[0, 0], &x[0], x.shape[0], least)


# ---------------------------------------------------------------------------------------------
# Rounds: pick the voter that decreases the objective most, weigh it, update every edge
# ---------------------------------------------------------------------------------------------

cdef class Edges:
    """The edge of every voter on one set of rows, and the risk there, as weights move.

    The residual is r = y - b - sum a_j h_j, where the intercept b follows the weights:
    when a_j moves by d, b moves by -d * centre_j (centre is zero without an intercept).
    """
    cdef public double risk
    cdef public double residual_mean
    cdef double[::1] _edge
    cdef const double[::1] _mean, _eta, _centre
    cdef const uintptr_t[::1] _address
    cdef int64_t[::1] _stamp
    cdef double _per_weight
    cdef bint _counts
    cdef int64_t[::1] _clock

    def __init__(
        self, double[::1] edge, const double[::1] mean, const double[::1] eta, const double[::1] centre,
        const uintptr_t[::1] address,    # where each voter's Gram column of sums is; 0 where it is not in memory
        int64_t[::1] stamp, int64_t[::1] clock,   # IN/OUT when each voter's column was last used, and the time
        double total_weight, bint counts, double risk, double residual_mean,
    ):
        self._edge, self._mean, self._eta, self._centre = edge, mean, eta, centre
        self._address, self._stamp, self._clock = address, stamp, clock
        self._per_weight, self._counts = 1.0 / total_weight, counts
        self.risk, self.residual_mean = risk, residual_mean

    cdef void _move_risk(self, Py_ssize_t j, double delta) noexcept nogil:
        cdef double centre = self._centre[j]
        cdef double own = self._edge[j] - centre * self.residual_mean
        cdef double eta = self._eta[j] - centre * (2 * self._mean[j] - centre)
        self.risk -= delta * (2 * own - delta * eta)
        self.residual_mean -= delta * (self._mean[j] - centre)
        self._clock[0] += 1
        self._stamp[j] = self._clock[0]

    cdef void _move_edges(self, Py_ssize_t j, double delta) noexcept nogil:
        cdef double p = delta * self._per_weight, q = delta * self._centre[j]
        if self._counts:
            move_counts(&self._edge[0], <const int32_t*> self._address[j], &self._mean[0], p, q, self._edge.shape[0])
        else:
            move_sums(&self._edge[0], <const double*> self._address[j], &self._mean[0], p, q, self._edge.shape[0])

    def move(self, Py_ssize_t j, double delta):
        """Change the weight of voter j by delta; its column must be in memory."""
        with nogil:
            self._move_risk(j, delta)
            self._move_edges(j, delta)


cdef class Rounds:
    """The boosting loop. Comes back to Python for a Gram column, at the end of a log, or to stop."""
    cdef public double objective
    cdef Edges _train, _validation
    cdef double[::1] _weight, _anchor
    cdef const double[::1] _eta, _curvature, _inverse, _zero
    cdef double _shrink, _cap
    cdef Py_ssize_t _best
    cdef double _best_decrease
    cdef bint _rated
    cdef int _n_threads

    LOG_FULL, NEEDS_COLUMN, CONVERGED = 0, 1, 2

    def __init__(
        self, Edges train, Edges validation,   # validation may be None
        double[::1] weight,                    # IN/OUT weight of every voter
        double[::1] anchor,                    # the weight that an update replaces: `weight` itself, or zeros where it adds
        const double[::1] eta,                 # IN  (centred) second moment of every voter
        const double[::1] curvature,           # IN  eta plus the quadratic part of the penalty
        const double[::1] inverse,             # IN  1 / curvature, 0 for a voter that is no candidate
        double shrink, double cap,             # the penalty's soft threshold and its bound on a weight
        double objective, int n_threads,
    ):
        self._train, self._validation, self._n_threads = train, validation, n_threads
        self._weight, self._anchor = weight, anchor
        self._eta, self._curvature, self._inverse = eta, curvature, inverse
        self._shrink, self._cap, self.objective = shrink, cap, objective
        self._zero = np.zeros(eta.shape[0])
        self._rated = False

    cdef double _rule(self, Py_ssize_t j, double z) noexcept nogil:
        """The weight that minimises the objective over one voter's weight."""
        cdef double lowered = z - self._shrink, raised = z + self._shrink
        cdef double w = ((lowered if lowered > 0 else 0) + (raised if raised < 0 else 0)) * self._inverse[j]
        w = w if w < self._cap else self._cap
        return w if w > -self._cap else -self._cap

    cdef void _pick(self, Py_ssize_t moved, double delta) noexcept nogil:
        """Update the edges after voter `moved` changed by delta, and find the best voter of the next round."""
        cdef double best[MOST_PARTS]
        cdef Py_ssize_t where[MOST_PARTS]
        cdef Py_ssize_t n_voters = self._eta.shape[0], part, step
        cdef int n_parts = 1 if n_voters < VOTERS_FOR_THREADS else min(self._n_threads, <int> MOST_PARTS)
        if n_parts == 1:
            self._pick_part(moved, delta, 0, n_voters, best, where)
        else:
            step = (n_voters // n_parts // BLOCK + 1) * BLOCK
            for part in prange(n_parts, schedule="static", num_threads=n_parts):
                self._pick_part(moved, delta, min(n_voters, part * step), min(n_voters, (part + 1) * step),
                                &best[part], &where[part])
        self._best, self._best_decrease = where[0], best[0]
        for part in range(1, n_parts):
            if best[part] > self._best_decrease:  # strictly: of equal voters the first wins
                self._best, self._best_decrease = where[part], best[part]

    cdef void _pick_part(
        self, Py_ssize_t moved, double delta, Py_ssize_t start, Py_ssize_t last, double* best, Py_ssize_t* where
    ) noexcept nogil:
        cdef double decrease[BLOCK]
        cdef double p = delta * self._train._per_weight, q = delta * self._train._centre[moved], top
        cdef Py_ssize_t i, n
        cdef const int32_t* counts = NULL
        cdef const double* sums = NULL
        if delta == 0:
            sums = &self._zero[0]
        elif self._train._counts:
            counts = <const int32_t*> self._train._address[moved]
        else:
            sums = <const double*> self._train._address[moved]
        best[0], where[0] = -1.0, start
        while start < last:
            n = min(<Py_ssize_t> BLOCK, last - start)
            if counts != NULL:
                top = move_and_rate_counts(
                    &self._train._edge[start], counts + start, &self._train._mean[start], p, q, &self._eta[start],
                    &self._curvature[start], &self._inverse[start], &self._anchor[start], self._shrink, self._cap,
                    decrease, n)
            else:
                top = move_and_rate_sums(
                    &self._train._edge[start], sums + start, &self._train._mean[start], p, q, &self._eta[start],
                    &self._curvature[start], &self._inverse[start], &self._anchor[start], self._shrink, self._cap,
                    decrease, n)
            if top > best[0]:  # strictly: of equal voters the first wins
                best[0] = top
                for i in range(n):
                    if decrease[i] == top:
                        where[0] = start + i
                        break
            start += n

    def run(
        self, int64_t[::1] voter,        # OUT one entry a round
        double[:, ::1] log,              # OUT (rounds, 6): edge, weight given, total weight, risk, objective, validation risk
        Py_ssize_t first, Py_ssize_t last, double floor,
    ):
        """Rounds first..last of the log; stops where the best decrease is not above `floor`.

        Returns (rounds logged so far, why it came back, the voter whose column is needed).
        """
        cdef Py_ssize_t t = first, j
        cdef double edge, given, delta
        cdef int why = 0
        cdef Edges train = self._train, validation = self._validation
        cdef bint has_validation = validation is not None
        with nogil:
            if not self._rated:
                self._pick(0, 0.0)
                self._rated = True
            while t < last:
                j = self._best
                if not self._best_decrease > floor:
                    why = 2
                    break
                if train._address[j] == 0 or (has_validation and validation._address[j] == 0):
                    why = 1
                    break
                edge = train._edge[j]
                given = self._rule(j, edge + self._eta[j] * self._anchor[j])
                delta = given - self._anchor[j]
                self.objective -= self._best_decrease
                self._weight[j] += delta
                train._move_risk(j, delta)
                if has_validation:
                    validation._move_risk(j, delta)
                    validation._move_edges(j, delta)
                    log[t, 5] = validation.risk
                voter[t] = j
                log[t, 0] = edge
                log[t, 1] = given
                log[t, 2] = self._weight[j]
                log[t, 3] = train.risk
                log[t, 4] = self.objective
                t += 1
                self._pick(j, delta)
        return t, why, self._best

    def sweep(self, Py_ssize_t first, int64_t[::1] voter, double[::1] total, Py_ssize_t n_logged):
        """Apply the re-weighting rule once to every voter of the ensemble, from voter `first` on.

        Returns (updates logged, the voter whose column is needed, or K when the sweep is done).
        """
        cdef Py_ssize_t j, n_voters = self._weight.shape[0]
        cdef double new, delta
        cdef Edges train = self._train, validation = self._validation
        cdef bint has_validation = validation is not None
        self._rated = False
        j = first
        with nogil:
            while j < n_voters:
                if self._weight[j] != 0:
                    if train._address[j] == 0 or (has_validation and validation._address[j] == 0):
                        break
                    new = self._rule(j, train._edge[j] + self._eta[j] * self._weight[j])
                    delta = new - self._weight[j]
                    if delta != 0:
                        self._weight[j] = new
                        train._move_risk(j, delta)
                        train._move_edges(j, delta)
                        if has_validation:
                            validation._move_risk(j, delta)
                            validation._move_edges(j, delta)
                        voter[n_logged] = j
                        total[n_logged] = new
                        n_logged += 1
                j += 1
        return n_logged, j

    def rerate(self):
        """Forget the picked voter: edges or weights were changed from outside."""
        self._rated = False
