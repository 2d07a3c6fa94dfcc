"""Joint counts of bins, and the Gram columns that are made of them when they are needed.

Sums are of integers, or of doubles that add up exactly: no order of rows changes a bit.
"""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from quadboost.kernels.store cimport Maker, Store
from quadboost.kernels.types cimport PREFETCH, code_t, count_t
from quadboost.kernels.voters cimport Layout, add_voters, run_along_columns

import numpy as np

cnp.import_array()

cdef extern from "compiler.h":
    uintptr_t LOAD(const uintptr_t*) noexcept nogil

cdef enum:
    LINE = 16  # counts in a cache line
    AHEAD = 16  # rows that are fetched before they are counted


# ---------------------------------------------------------------------------------------------
# Joint counts
# ---------------------------------------------------------------------------------------------

cdef inline const code_t* _row_soon(const code_t* codes, Py_ssize_t d, const int32_t* rows, Py_ssize_t i) noexcept nogil:
    """Row rows[i], while the one that is needed AHEAD rows later, with all of its bytes, is on its way."""
    cdef const code_t* later = codes + rows[i + AHEAD] * d
    PREFETCH(later)
    PREFETCH(later + d - 1)
    return codes + rows[i] * d


cdef struct coded_t:                 # rows coded by the bins of columns
    const void* codes                # (rows, d)
    int size                         # bytes of a code
    Py_ssize_t d
    const int64_t* bin_start
    Py_ssize_t n_bins                # of all columns


cdef void _count_codes(
    const code_t* codes, coded_t of, const count_t* mass, const int32_t* rows, Py_ssize_t n,
    const int64_t[::1] columns, count_t* bins,
) noexcept nogil:
    cdef Py_ssize_t i = 0, f, k, d = of.d
    cdef const code_t* r0
    cdef const code_t* r1
    cdef const code_t* r2
    cdef const code_t* r3
    cdef count_t w0 = 1, w1 = 1, w2 = 1, w3 = 1
    cdef count_t* sums_of_f
    memset(bins, 0, of.n_bins * sizeof(count_t))
    while i + 4 + AHEAD <= n:  # four rows at a time: a feature is looked up once for all
        r0, r1 = _row_soon(codes, d, rows, i), _row_soon(codes, d, rows, i + 1)
        r2, r3 = _row_soon(codes, d, rows, i + 2), _row_soon(codes, d, rows, i + 3)
        if mass != NULL:
            w0, w1, w2, w3 = mass[rows[i]], mass[rows[i + 1]], mass[rows[i + 2]], mass[rows[i + 3]]
        for k in range(columns.shape[0]):
            f = columns[k]
            sums_of_f = bins + of.bin_start[f]
            sums_of_f[r0[f]] += w0
            sums_of_f[r1[f]] += w1
            sums_of_f[r2[f]] += w2
            sums_of_f[r3[f]] += w3
        i += 4
    while i < n:
        r0 = codes + rows[i] * d
        if mass != NULL:
            w0 = mass[rows[i]]
        for k in range(columns.shape[0]):
            f = columns[k]
            bins[of.bin_start[f] + r0[f]] += w0
        i += 1


cdef void _count_rows(
    coded_t of, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t[::1] columns, count_t* bins
) noexcept nogil:
    """Count rows in the bins of the given columns."""
    if of.size == 1:
        _count_codes(<const uint8_t*> of.codes, of, mass, rows, n, columns, bins)
    elif of.size == 2:
        _count_codes(<const uint16_t*> of.codes, of, mass, rows, n, columns, bins)
    else:
        _count_codes(<const uint32_t*> of.codes, of, mass, rows, n, columns, bins)


cdef void _count_in_parallel(
    coded_t of, const count_t* mass, const int32_t* rows, Py_ssize_t n, const int64_t[::1] columns, count_t* bins,
    int n_threads,
) noexcept nogil:
    cdef Py_ssize_t t, b, first
    if n_threads == 1:
        _count_rows(of, mass, rows, n, columns, bins)
        return
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        first = t * n // n_threads
        _count_rows(of, mass, rows + first, (t + 1) * n // n_threads - first, columns, bins + t * of.n_bins)
    for t in range(1, n_threads):
        for b in range(of.n_bins):
            bins[b] += bins[t * of.n_bins + b]


cdef void _tabulate(
    coded_t of, const count_t* mass, const int32_t* rows, const int64_t[::1] bin_end, const int64_t[::1] columns,
    count_t* table, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t b, first
    for b in prange(bin_end.shape[0], schedule="dynamic", num_threads=n_threads):
        first = bin_end[b - 1] if b > 0 else 0
        _count_rows(of, mass, rows + first, bin_end[b] - first, columns, table + b * of.n_bins)


cdef void _copy_transposed(
    const count_t* of_g, Py_ssize_t n_f, Py_ssize_t n_g, Py_ssize_t n, count_t* of_f
) noexcept nogil:
    cdef Py_ssize_t a, b, start = 0, end
    while start < n_f:
        end = min(n_f, start + LINE)
        for b in range(n_g):
            for a in range(start, end):
                of_f[a * n + b] = of_g[b * n + a]
        start = end


cdef void _run_table(Layout layout, count_t* table, Py_ssize_t n_rows, Py_ssize_t n, int n_threads) noexcept nogil:
    cdef Py_ssize_t b, t, first, last
    for b in prange(n_rows, schedule="static", num_threads=n_threads):
        run_along_columns(layout, table + b * n, 1)
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        first, last = t * n // n_threads, (t + 1) * n // n_threads
        _run_down(table, n_rows, n, first, last)


cdef void _run_down(count_t* table, Py_ssize_t n_rows, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t b, i
    for b in range(1, n_rows):
        for i in range(first, last):
            table[b * n + i] += table[(b - 1) * n + i]


# ---------------------------------------------------------------------------------------------
# Gram columns
# ---------------------------------------------------------------------------------------------

cdef struct rows_t:                  # the rows by the bins of one column
    const int64_t* start             # where each bin begins in their order, and where the last one ends; NULL: not known
    const int32_t* order             # the rows, sorted; NULL where there is a table
    const void* table                # a row per bin: running sums per bin of all columns, of the rows up to its end
    const void* present              # products of every voter with one that is 1 wherever the column is not missing
    Py_ssize_t n_bins


cdef struct begin_t:                 # a voter to begin with: sign times its column, and where its rows are in the order
    const void* column
    int sign
    int64_t low, high


cdef class ColumnMaker(Maker):
    """Gram columns of interval voters, from joint counts of bins.

    Two voters of a column differ only on the rows where their intervals do. So a Gram column is that of the nearest
    known voter plus the joint counts of those rows with every bin of every column; none is far, for the constants
    are known too.
    """
    cdef cnp.ndarray _codes, _mass, _scratch, _voter_sum
    cdef Layout _layout
    cdef coded_t _coded
    cdef const int64_t[::1] _columns
    cdef rows_t* _rows
    cdef list _kept
    cdef bint _counts
    cdef int _n_threads
    cdef Py_ssize_t _counts_for_threads

    def __cinit__(self, cnp.ndarray codes, *_):
        self._rows = <rows_t*> calloc(max(1, codes.shape[1]), sizeof(rows_t))
        if self._rows == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._rows)

    def __init__(
        self, cnp.ndarray codes, cnp.ndarray mass, Layout layout, cnp.ndarray voter_sum,
        int n_threads, Py_ssize_t counts_for_threads,
    ):
        """`mass` may be None where `voter_sum` is of int32: every row counts once. Else sums are float64."""
        self._codes, self._mass, self._layout, self._voter_sum = codes, mass, layout, voter_sum
        self._n_threads, self._counts_for_threads = n_threads, counts_for_threads
        self._counts = voter_sum.dtype == np.int32
        self._columns = np.arange(codes.shape[1])
        self._coded.codes, self._coded.size = cnp.PyArray_DATA(codes), cnp.PyArray_ITEMSIZE(codes)
        self._coded.d, self._coded.bin_start = codes.shape[1], &layout._bin_start[0]
        self._coded.n_bins = layout._bin_start[codes.shape[1]]
        self._scratch = np.empty((n_threads, self._coded.n_bins), dtype=voter_sum.dtype)
        self._kept = [None] * codes.shape[1]

    def set_rows(self, Py_ssize_t f, cnp.ndarray start, cnp.ndarray present, cnp.ndarray order, cnp.ndarray table):
        """Columns of the voters of column f can be made from here on; of `order` and `table` one is None."""
        cdef rows_t rows
        rows.start, rows.n_bins = <const int64_t*> cnp.PyArray_DATA(start), start.shape[0] - 1
        rows.present = cnp.PyArray_DATA(present)
        rows.order = NULL if order is None else <const int32_t*> cnp.PyArray_DATA(order)
        rows.table = NULL if table is None else cnp.PyArray_DATA(table)
        self._kept[f] = (start, present, order, table)
        self._rows[f] = rows

    def drop_rows(self, Py_ssize_t f):
        """Forget the rows of column f."""
        self._rows[f].start = NULL
        self._kept[f] = None

    def add(self, cnp.ndarray rows, int factor, cnp.ndarray column):
        """Add factor times the products of every voter with one that is 1 on the given rows and 0 on the others."""
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef void* bins = cnp.PyArray_DATA(self._scratch)
        cdef void* out = cnp.PyArray_DATA(column)
        with nogil:
            self._add_rows(order, rows.shape[0], factor, bins, out, self._n_threads)

    def tabulate(self, cnp.ndarray rows, const int64_t[::1] bin_end, const int64_t[::1] columns, cnp.ndarray table):
        """Fill a table, a row per bin of a column: sums in the bins of the given columns, and zero in others."""
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef void* out = cnp.PyArray_DATA(table)
        cdef int n_threads = self._threads_for(rows.shape[0] * columns.shape[0])
        with nogil:
            if self._counts:
                _tabulate(self._coded, <const int32_t*> NULL, order, bin_end, columns, <int32_t*> out, n_threads)
            else:
                _tabulate(self._coded, <const double*> cnp.PyArray_DATA(self._mass), order, bin_end, columns,
                          <double*> out, n_threads)

    def run_along(self, cnp.ndarray table):
        """Make the sums of a table running sums, over the bins of each column and down."""
        cdef void* out = cnp.PyArray_DATA(table)
        cdef Py_ssize_t n_rows = table.shape[0]
        cdef int n_threads = self._threads_for(table.shape[0] * table.shape[1])
        with nogil:
            if self._counts:
                _run_table(self._layout, <int32_t*> out, n_rows, self._coded.n_bins, n_threads)
            else:
                _run_table(self._layout, <double*> out, n_rows, self._coded.n_bins, n_threads)

    def copy_transposed(self, cnp.ndarray of_g, Py_ssize_t first_f, Py_ssize_t first_g, cnp.ndarray of_f):
        """Write the joint counts of f and g into the table of f, from that of g; first: where the bins of each begin."""
        cdef const void* known = cnp.PyArray_DATA(of_g)
        cdef void* out = cnp.PyArray_DATA(of_f)
        cdef Py_ssize_t n_f = of_f.shape[0], n_g = of_g.shape[0], n = self._coded.n_bins
        with nogil:
            if self._counts:
                _copy_transposed(<const int32_t*> known + first_f, n_f, n_g, n, <int32_t*> out + first_g)
            else:
                _copy_transposed(<const double*> known + first_f, n_f, n_g, n, <double*> out + first_g)

    def add_up_to(self, cnp.ndarray table, Py_ssize_t bin, cnp.ndarray column):
        """Add the products of every voter with one that is 1 in the bins up to this one, from the table of a column."""
        cdef rows_t rows
        rows.table = cnp.PyArray_DATA(table)
        with nogil:
            self._add_table(rows, bin, 1, cnp.PyArray_DATA(column))

    cdef int _threads_for(self, Py_ssize_t n_counts) noexcept nogil:
        return self._n_threads if n_counts >= self._counts_for_threads else 1

    cdef bint write(self, Py_ssize_t voter, Store store, void* out) noexcept nogil:
        cdef Py_ssize_t f = _last_at_most(self._layout._voter_start, voter)
        cdef Py_ssize_t first = self._layout._bin_start[f], low = self._layout._low[voter] - first
        cdef Py_ssize_t high = self._layout._high[voter] - first, whole = self._layout._whole[voter] - first
        cdef rows_t rows = self._rows[f]
        cdef const void* base = rows.present if whole < rows.n_bins - 1 else cnp.PyArray_DATA(self._voter_sum)
        if rows.start == NULL:
            return False
        if rows.table == NULL:
            return self._write_from_rows(voter, f, rows, base, store, out)
        if high == whole:  # -1 up to bin `low`, +1 in all others
            self._copy(base, 1, out)
            self._add_table(rows, low, -2, out)
        else:
            self._copy(base, -1, out)
            self._add_table(rows, high, 2, out)
            self._add_table(rows, low, -2, out)
        return True

    cdef bint _write_from_rows(
        self, Py_ssize_t voter, Py_ssize_t f, rows_t rows, const void* base, Store store, void* out
    ) noexcept nogil:
        """Begin with the voter that differs on the fewest rows, and count those; false if there is no memory."""
        cdef Py_ssize_t known, least, n
        cdef int step, n_threads = self._n_threads
        cdef void* bins = cnp.PyArray_DATA(self._scratch)
        cdef int64_t whole = self._bin_end(rows, f, self._layout._whole[voter])
        cdef begin_t wanted = self._place(voter, f, rows), begin, other
        begin.column, begin.sign, begin.low, begin.high = base, -1, wanted.low, wanted.low  # -1 wherever it votes
        other.column, other.sign, other.low, other.high = base, 1, 0, whole  # +1 wherever it votes
        least = _n_between(wanted, begin)
        n = _n_between(wanted, other)
        if n < least:
            begin, least = other, n
        for step in range(-1, 2, 2):
            known = self._known(voter, f, step, store)
            if known >= 0:
                other = self._place(known, f, rows)
                other.column, other.sign = <const void*> store._address[known], 1
                n = _n_between(wanted, other)
                if n < least:
                    begin, least = other, n
        if store.is_shared:  # others count too, in threads of their own
            n_threads = 1
            bins = malloc(self._coded.n_bins * (sizeof(int32_t) if self._counts else sizeof(double)))
            if bins == NULL:
                return False
        self._copy(begin.column, begin.sign, out)
        self._add_between(rows, begin.low, wanted.low, -2, bins, out, n_threads)
        self._add_between(rows, begin.high, wanted.high, 2, bins, out, n_threads)
        if store.is_shared:
            free(bins)
        else:
            store.work += least * self._coded.d
        return True

    cdef int64_t _bin_end(self, rows_t rows, Py_ssize_t f, Py_ssize_t bin) noexcept nogil:
        return rows.start[bin - self._layout._bin_start[f] + 1]

    cdef begin_t _place(self, Py_ssize_t voter, Py_ssize_t f, rows_t rows) noexcept nogil:
        cdef begin_t place
        place.low = self._bin_end(rows, f, self._layout._low[voter])
        place.high = self._bin_end(rows, f, self._layout._high[voter])
        place.column, place.sign = NULL, 1
        return place

    cdef Py_ssize_t _known(self, Py_ssize_t voter, Py_ssize_t f, int step, Store store) noexcept nogil:
        """The nearest voter of the column on one side that has a column and abstains where this one does; or -1."""
        cdef Py_ssize_t other = voter + step, first = self._layout._voter_start[f]
        cdef Py_ssize_t last = self._layout._voter_start[f + 1]
        while first <= other < last:
            if LOAD(&store._address[other]) != 0 and self._layout._whole[other] == self._layout._whole[voter]:
                return other
            other += step
        return -1

    cdef void _copy(self, const void* column, int sign, void* out) noexcept nogil:
        if self._counts:
            _copy_column(<const int32_t*> column, <int32_t> sign, <int32_t*> out, self._voter_sum.shape[0])
        else:
            _copy_column(<const double*> column, <double> sign, <double*> out, self._voter_sum.shape[0])

    cdef void _add_between(
        self, rows_t rows, int64_t here, int64_t wanted, int factor, void* bins, void* out, int n_threads
    ) noexcept nogil:
        if wanted > here:
            self._add_rows(rows.order + here, wanted - here, factor, bins, out, n_threads)
        elif wanted < here:
            self._add_rows(rows.order + wanted, here - wanted, -factor, bins, out, n_threads)

    cdef void _add_rows(
        self, const int32_t* order, Py_ssize_t n, int factor, void* bins, void* out, int n_threads
    ) noexcept nogil:
        """`bins` is scratch, a number for each bin and thread."""
        cdef int n_counting = min(n_threads, self._threads_for(n * self._coded.d))
        if self._counts:
            _count_in_parallel(self._coded, <const int32_t*> NULL, order, n, self._columns, <int32_t*> bins, n_counting)
            run_along_columns(self._layout, <int32_t*> bins, n_threads)
            add_voters(self._layout, <const int32_t*> bins, <int32_t> factor, <int32_t*> out, n_threads)
        else:
            _count_in_parallel(self._coded, <const double*> cnp.PyArray_DATA(self._mass), order, n, self._columns,
                               <double*> bins, n_counting)
            run_along_columns(self._layout, <double*> bins, n_threads)
            add_voters(self._layout, <const double*> bins, <double> factor, <double*> out, n_threads)

    cdef void _add_table(self, rows_t rows, Py_ssize_t bin, int factor, void* out) noexcept nogil:
        """Add factor times the products with a voter that is 1 in the bins up to this one."""
        cdef Py_ssize_t n_bins = self._coded.n_bins
        if self._counts:
            add_voters(self._layout, <const int32_t*> rows.table + bin * n_bins, <int32_t> factor, <int32_t*> out,
                       self._n_threads)
        else:
            add_voters(self._layout, <const double*> rows.table + bin * n_bins, <double> factor, <double*> out,
                       self._n_threads)


cdef inline Py_ssize_t _n_between(begin_t one, begin_t other) noexcept nogil:
    """Rows that are in one of two intervals and not in the other, unless the intervals are apart; then more."""
    cdef int64_t low = one.low - other.low, high = one.high - other.high
    return (low if low > 0 else -low) + (high if high > 0 else -high)


cdef inline Py_ssize_t _last_at_most(const int64_t[::1] ascending, Py_ssize_t value) noexcept nogil:
    cdef Py_ssize_t low = 0, high = ascending.shape[0] - 1, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if ascending[middle] <= value:
            low = middle
        else:
            high = middle
    return low


cdef void _copy_column(const count_t* column, count_t sign, count_t* out, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if sign > 0:
        memcpy(out, column, n * sizeof(count_t))
        return
    for i in range(n):
        out[i] = -column[i]
