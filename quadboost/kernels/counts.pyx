"""Kernels that sum over coded rows: per bin, per voter, and per pair of voters (Gram columns).

Every sum over rows is a sum of integers, so that neither the number of threads nor the order of rows can change a
bit of a result. Python allocates, the kernels fill; arguments are marked IN / OUT. Kernels trust what they are given
(the callers check) and hold no policy.
"""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from quadboost.kernels.types cimport PREFETCH, code_t, count_t, exact_t, sum_of_products, sum_t
from quadboost.kernels.voters cimport add_voters, intervals_t, run_along

import numpy as np

cnp.import_array()

cdef enum:
    VOTERS_FOR_THREADS = 500000  # below which a second thread costs more than it brings
    LINE = 16  # counts in a cache line
    AHEAD = 16  # rows that are fetched before they are counted


# ---------------------------------------------------------------------------------------------
# Bins: sums, and rows in the order of a feature's bins
# ---------------------------------------------------------------------------------------------

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
    sum_t[::1] out,                  # OUT (bins of all columns) sum of value in each bin; zeroed by the caller
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
# ---------------------------------------------------------------------------------------------

cdef class Layout:
    """Where the bins and the voters of every column are."""
    cdef const int64_t[::1] _bin_start, _voter_start, _n_nested
    cdef const int32_t[::1] _low, _high, _whole
    cdef tuple _arrays

    def __init__(self, bin_start, voter_start, n_nested, low, high, whole):
        """`bin_start` and `voter_start` have an entry per column and one more; for the others see voters.h."""
        self._arrays = (bin_start, voter_start, n_nested, low, high, whole)
        self._bin_start, self._voter_start, self._n_nested = bin_start, voter_start, n_nested
        self._low, self._high, self._whole = low, high, whole

    def __reduce__(self):
        return Layout, self._arrays

    cdef intervals_t _intervals(self, Py_ssize_t f) noexcept nogil:
        """Of a column that has voters."""
        cdef intervals_t of
        cdef Py_ssize_t first = self._voter_start[f]
        of.n_voters, of.n_nested = self._voter_start[f + 1] - first, self._n_nested[f]
        of.low, of.high, of.whole = &self._low[first], &self._high[first], &self._whole[first]
        return of


cdef void _run_along_columns(Layout layout, exact_t* bins, int n_threads) noexcept nogil:
    cdef Py_ssize_t f, d = layout._n_nested.shape[0]
    cdef const int64_t* start = &layout._bin_start[0]
    if n_threads == 1 or start[d] < VOTERS_FOR_THREADS:
        for f in range(d):
            run_along(bins + start[f], start[f + 1] - start[f])
    else:
        for f in prange(d, schedule="dynamic", num_threads=n_threads):
            run_along(bins + start[f], start[f + 1] - start[f])


cdef void _add_voters(Layout layout, const exact_t* running, exact_t factor, exact_t* out, int n_threads) noexcept nogil:
    cdef Py_ssize_t f, d = layout._n_nested.shape[0]
    cdef const int64_t* start = &layout._voter_start[0]
    if n_threads == 1 or start[d] < VOTERS_FOR_THREADS:
        for f in range(d):
            if start[f + 1] > start[f]:
                add_voters(running, layout._intervals(f), factor, out + start[f])
    else:
        for f in prange(d, schedule="dynamic", num_threads=n_threads):
            if start[f + 1] > start[f]:
                add_voters(running, layout._intervals(f), factor, out + start[f])


def voter_sums(
    Layout layout,
    sum_t[::1] bins,                 # IN/OUT sums per bin of all columns; then running sums
    sum_t[::1] out,                  # IN/OUT (K) sums per voter are added
):
    """Add the sum of value * h for every voter, from sums of value per bin."""
    if bins.shape[0] > 0:
        _run_along_columns(layout, &bins[0], 1)
    if out.shape[0] > 0:
        _add_voters(layout, &bins[0], <sum_t> 1, &out[0], 1)


# ---------------------------------------------------------------------------------------------
# Gram columns
# ---------------------------------------------------------------------------------------------

def address_of(cnp.ndarray array) -> int:
    """Where an array is in memory."""
    return <size_t> cnp.PyArray_DATA(array)


cdef inline const code_t* _row_soon(const code_t* codes, Py_ssize_t d, const int32_t* rows, Py_ssize_t i) noexcept nogil:
    """Row rows[i], while the one that is needed AHEAD rows later, with all of its bytes, is on its way."""
    cdef const code_t* later = codes + rows[i + AHEAD] * d
    PREFETCH(later)
    PREFETCH(later + d - 1)
    return codes + rows[i] * d


cdef void _count_rows(
    const code_t* codes, Py_ssize_t d, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t* bin_start,
    const int64_t* columns, Py_ssize_t n_columns, count_t* bins, Py_ssize_t n_bins,
) noexcept nogil:
    """Count rows in the bins of the given columns."""
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
        for k in range(n_columns):
            f = columns[k]
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
        for k in range(n_columns):
            f = columns[k]
            bins[bin_start[f] + r0[f]] += w0
        i += 1


cdef class RowCounter:
    """Joint counts of some rows with every bin of every column, as products with every voter.

    A class, because what does not change is looked at once: a column of the Gram matrix takes microseconds.
    Not to be shared by threads: its scratch memory is its own.
    """
    cdef cnp.ndarray _codes, _mass, _scratch
    cdef Layout _layout
    cdef const int64_t[::1] _columns
    cdef bint _counts
    cdef int _n_threads

    def __init__(self, cnp.ndarray codes, cnp.ndarray mass, Layout layout, int n_threads, bint counts):
        """`mass` may be None where `counts` is true: every row counts once, in int32; else sums are float64."""
        self._codes, self._mass, self._counts, self._n_threads = codes, mass, counts, n_threads
        self._layout = layout
        self._columns = np.arange(codes.shape[1])
        n_bins = layout._bin_start[codes.shape[1]]
        self._scratch = np.empty((n_threads, n_bins), dtype=np.int32 if counts else np.float64)

    def add(self, cnp.ndarray rows, int factor, cnp.ndarray column, int n_threads):
        """Add factor times the products of every voter with one that is 1 on the given rows and 0 on the others."""
        cdef cnp.ndarray codes = self._codes
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef Py_ssize_t n = rows.shape[0], d = codes.shape[1]
        cdef void* bins = cnp.PyArray_DATA(self._scratch)
        cdef int size = cnp.PyArray_ITEMSIZE(codes)
        with nogil:
            if size == 1:
                self._count(<const uint8_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            elif size == 2:
                self._count(<const uint16_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            else:
                self._count(<const uint32_t*> cnp.PyArray_DATA(codes), d, order, n, n_threads)
            if self._counts:
                _run_along_columns(self._layout, <int32_t*> bins, self._n_threads)
            else:
                _run_along_columns(self._layout, <double*> bins, self._n_threads)
        self.add_running(self._scratch, factor, column)

    def add_running(self, cnp.ndarray running, int factor, cnp.ndarray column):
        """The same from running sums over bins that were counted before."""
        cdef const void* sums = cnp.PyArray_DATA(running)
        cdef void* out = cnp.PyArray_DATA(column)
        with nogil:
            if self._counts:
                _add_voters(self._layout, <const int32_t*> sums, <int32_t> factor, <int32_t*> out, self._n_threads)
            else:
                _add_voters(self._layout, <const double*> sums, <double> factor, <double*> out, self._n_threads)

    def tabulate(
        self, cnp.ndarray rows, const int64_t[::1] bin_end, const int64_t[::1] columns, cnp.ndarray table, int n_threads
    ):
        """Fill a table, a row per bin of a column: sums per bin of the given columns over the rows of that bin."""
        cdef cnp.ndarray codes = self._codes
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef Py_ssize_t d = codes.shape[1], n_bins = table.shape[1]
        cdef int size = cnp.PyArray_ITEMSIZE(codes)
        cdef const int64_t* bin_start = &self._layout._bin_start[0]
        with nogil:
            if self._counts:
                _tabulate(cnp.PyArray_DATA(codes), size, d, <const int32_t*> NULL, order, bin_end, bin_start,
                          columns, <int32_t*> cnp.PyArray_DATA(table), n_bins, n_threads)
            else:
                _tabulate(cnp.PyArray_DATA(codes), size, d, <const double*> cnp.PyArray_DATA(self._mass), order, bin_end,
                          bin_start, columns, <double*> cnp.PyArray_DATA(table), n_bins, n_threads)

    def run_table(self, cnp.ndarray table, int n_threads):
        """Make the sums of a table running sums, along the bins of every column and down."""
        cdef Py_ssize_t n_rows = table.shape[0], n = table.shape[1]
        cdef void* sums = cnp.PyArray_DATA(table)
        with nogil:
            if self._counts:
                _run_table(self._layout, <int32_t*> sums, n_rows, n, n_threads)
            else:
                _run_table(self._layout, <double*> sums, n_rows, n, n_threads)

    cdef void _count(self, const code_t* codes, Py_ssize_t d, const int32_t* rows, Py_ssize_t n, int n_threads) noexcept nogil:
        cdef const int64_t* bin_start = &self._layout._bin_start[0]
        if self._counts:
            _count_in_parallel(codes, d, <const int32_t*> NULL, rows, n, bin_start, &self._columns[0],
                               <int32_t*> cnp.PyArray_DATA(self._scratch), self._scratch.shape[1], n_threads)
        else:
            _count_in_parallel(codes, d, <const double*> cnp.PyArray_DATA(self._mass), rows, n, bin_start,
                               &self._columns[0], <double*> cnp.PyArray_DATA(self._scratch), self._scratch.shape[1], n_threads)


cdef void _tabulate(
    const void* codes, int size, Py_ssize_t d, const count_t* mass, const int32_t* rows, const int64_t[::1] bin_end,
    const int64_t* bin_start, const int64_t[::1] columns, count_t* table, Py_ssize_t n_bins, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t b, first, last, n = columns.shape[0]
    cdef const int64_t* chosen = &columns[0]
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


def copy_transposed(
    const count_t[:, ::1] of_g,      # IN  (bins of g, all bins) running sums along columns and down
    Py_ssize_t first_f,              # IN  where the bins of f begin
    Py_ssize_t first_g,              # IN  where the bins of g begin
    count_t[:, ::1] of_f,            # OUT (bins of f, all bins) the same: the bins of g are written
):
    """The joint counts of f and g from those of g and f."""
    cdef Py_ssize_t a, b, start, end, n_f = of_f.shape[0], n_g = of_g.shape[0]
    with nogil:
        start = 0
        while start < n_f:
            end = min(n_f, start + LINE)
            for b in range(n_g):
                for a in range(start, end):
                    of_f[a, first_g + b] = of_g[b, first_f + a]
            start = end


cdef void _run_table(Layout layout, count_t* table, Py_ssize_t n_rows, Py_ssize_t n, int n_threads) noexcept nogil:
    cdef Py_ssize_t b, t, i, first, last
    for b in prange(n_rows, schedule="static", num_threads=n_threads):
        _run_along_columns(layout, table + b * n, 1)
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        first, last = t * n // n_threads, (t + 1) * n // n_threads
        _run_down(table, n_rows, n, first, last)


cdef void _run_down(count_t* table, Py_ssize_t n_rows, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t b, i
    for b in range(1, n_rows):
        for i in range(first, last):
            table[b * n + i] += table[(b - 1) * n + i]


cdef void _count_in_parallel(
    const code_t* codes, Py_ssize_t d, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t* bin_start,
    const int64_t* columns, count_t* bins, Py_ssize_t n_bins, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t t, b, first
    if n_threads == 1:
        _count_rows(codes, d, mass, rows, n, bin_start, columns, d, bins, n_bins)
        return
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        first = t * n // n_threads
        _count_rows(codes, d, mass, rows + first, (t + 1) * n // n_threads - first, bin_start, columns, d,
                    bins + t * n_bins, n_bins)
    for t in range(1, n_threads):
        for b in range(n_bins):
            bins[b] += bins[t * n_bins + b]


def matrix_products(
    const double[::1, :] H,          # IN  (m, K) outputs of the voters
    const double[::1] value,         # IN  (m)
    double[::1] out,                 # OUT (K) sum over rows of H * value
    int n_threads,
):
    cdef Py_ssize_t j
    for j in prange(H.shape[1], nogil=True, schedule="static", num_threads=n_threads):
        out[j] = sum_of_products(&H[0, j], &value[0], H.shape[0])
