"""Kernels that sum over rows: per bin of coded rows, over voters given by their outputs, and random signs.

Every sum over coded rows is a sum of integers, so that neither the number of threads nor the order of rows can change
a bit of a result.
"""
import numpy as np

cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from quadboost.kernels.types cimport code_t, sum_of_products


cdef extern from "coded.h":
    void add_values(
        const void* codes, int size, Py_ssize_t d, const int64_t* column, const int64_t* start, Py_ssize_t n,
        const double* value, Py_ssize_t k, double* out, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    void add_to_bins(
        const void* codes, int size, Py_ssize_t m, Py_ssize_t d, const int64_t* value, Py_ssize_t k,
        const int64_t* start, int64_t* out, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    void in_units(
        const double*, Py_ssize_t, Py_ssize_t, double, const double*, const int64_t*, int64_t*) noexcept nogil

cdef enum:
    ROWS_AT_A_TIME = 1024  # scored, then added to the bins, while their codes are at hand


def bin_sums(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    const int64_t[:, ::1] value,     # IN  (m, n_values)
    const int64_t[::1] bin_start,    # IN  (d + 1)
    int64_t[:, ::1] out,             # OUT (bins of all columns, n_values) sums in each bin; zeroed by the caller
    int n_threads,
):
    cdef const void* data = cnp.PyArray_DATA(codes)
    cdef Py_ssize_t t, m = codes.shape[0], d = codes.shape[1], k = value.shape[1], first, last
    cdef int size = cnp.PyArray_ITEMSIZE(codes)
    if m == 0 or k == 0:
        return
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        first, last = t * d // n_threads, (t + 1) * d // n_threads
        add_to_bins(data, size, m, d, &value[0, 0], k, &bin_start[0], &out[0, 0], first, last)


def score_codes(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    const int64_t[::1] column,       # IN  (n) the columns that count
    const int64_t[::1] start,        # IN  (n) where their values begin
    const double[:, ::1] value,      # IN  (values, n_outputs) what each bin of each is worth
    double[:, ::1] out,              # IN/OUT (m, n_outputs)
    int n_threads,
):
    """Add to every score what its row's bins are worth, always in the same order."""
    cdef const void* data = cnp.PyArray_DATA(codes)
    cdef Py_ssize_t t, m = codes.shape[0], d = codes.shape[1], n = column.shape[0], k = value.shape[1], first, last
    cdef int size = cnp.PyArray_ITEMSIZE(codes)
    if m == 0 or n == 0:
        return
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        first, last = t * m // n_threads, (t + 1) * m // n_threads
        add_values(data, size, d, &column[0], &start[0], n, &value[0, 0], k, &out[0, 0], first, last)


def bin_sums_of_scores(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    const int64_t[::1] column,       # IN  (n) the columns that scores are made of
    const int64_t[::1] start,        # IN  (n) where their values begin
    const double[:, ::1] value,      # IN  (values, k) what each bin of each is worth
    double per_unit,                 # scores are rounded to whole numbers of units, below 2**51
    const double[::1] factor,        # IN  (m) times the score before that; empty: 1
    const int64_t[::1] count,        # IN  (m) times the whole number; empty: 1
    const int64_t[::1] bin_start,    # IN  (d + 1)
    int64_t[:, :, ::1] out,          # OUT (n_threads, bins of all columns, k) sums in each bin; zeroed by the caller
):
    """`score_codes` and `bin_sums` of these scores, in one pass over the rows."""
    cdef const char* data = <const char*> cnp.PyArray_DATA(codes)
    cdef Py_ssize_t t, m = codes.shape[0], d = codes.shape[1], n = column.shape[0], k = value.shape[1], r, last, rows
    cdef int size = cnp.PyArray_ITEMSIZE(codes), n_threads = <int> out.shape[0]
    cdef const double* factors = &factor[0] if factor.shape[0] else NULL
    cdef const int64_t* counts = &count[0] if count.shape[0] else NULL
    cdef double[:, ::1] score = np.empty((n_threads, ROWS_AT_A_TIME * k))
    cdef int64_t[:, ::1] whole = np.empty((n_threads, ROWS_AT_A_TIME * k), dtype=np.int64)
    if m == 0 or n == 0:
        return
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        r, last = t * m // n_threads, (t + 1) * m // n_threads
        while r < last:
            rows = min(ROWS_AT_A_TIME, last - r)
            memset(&score[t, 0], 0, rows * k * sizeof(double))
            add_values(data + r * d * size, size, d, &column[0], &start[0], n, &value[0, 0], k, &score[t, 0], 0, rows)
            in_units(&score[t, 0], rows, k, per_unit, factors + r if factors else NULL, counts + r if counts else NULL,
                     &whole[t, 0])
            add_to_bins(data + r * d * size, size, rows, d, &whole[t, 0], k, &bin_start[0], &out[t, 0, 0], 0, d)
            r = r + rows


def sort_rows(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    Py_ssize_t f,
    int64_t[:, ::1] count,           # scratch (n_threads, bins of f)
    cnp.ndarray scratch,             # scratch (m) of the type of codes
    int64_t[::1] bin_end,            # OUT (bins of f) where each bin ends in `order`
    int32_t[::1] order,              # OUT (m) rows by their bin of feature f, in order within a bin
    int n_threads,
):
    cdef const void* data = cnp.PyArray_DATA(codes)
    cdef void* codes_of_f = cnp.PyArray_DATA(scratch)
    cdef int size = cnp.PyArray_ITEMSIZE(codes)
    with nogil:
        if size == 1:
            _sort_rows(<const uint8_t*> data + f, codes.shape[1], count, <uint8_t*> codes_of_f, bin_end, order, n_threads)
        elif size == 2:
            _sort_rows(<const uint16_t*> data + f, codes.shape[1], count, <uint16_t*> codes_of_f, bin_end, order, n_threads)
        else:
            _sort_rows(<const uint32_t*> data + f, codes.shape[1], count, <uint32_t*> codes_of_f, bin_end, order, n_threads)


cdef void _sort_rows(
    const code_t* codes, Py_ssize_t d, int64_t[:, ::1] count, code_t* codes_of_f, int64_t[::1] bin_end,
    int32_t[::1] order, int n_threads,
) noexcept nogil:
    cdef Py_ssize_t t, b, m = order.shape[0], n_bins = bin_end.shape[0]
    cdef int64_t here = 0, n
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        _count_codes(codes, d, codes_of_f, &count[t, 0], n_bins, t * m // n_threads, (t + 1) * m // n_threads)
    for b in range(n_bins):
        for t in range(n_threads):
            n = count[t, b]
            count[t, b] = here
            here += n
        bin_end[b] = here
    for t in prange(n_threads, schedule="static", num_threads=n_threads):
        _place_rows(codes_of_f, &count[t, 0], &order[0], t * m // n_threads, (t + 1) * m // n_threads)


cdef void _count_codes(
    const code_t* codes, Py_ssize_t d, code_t* codes_of_f, int64_t* count, Py_ssize_t n_bins, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    cdef Py_ssize_t r
    memset(count, 0, n_bins * sizeof(int64_t))
    for r in range(first, last):
        codes_of_f[r] = codes[r * d]
        count[codes_of_f[r]] += 1


cdef void _place_rows(
    const code_t* codes_of_f, int64_t* here, int32_t* order, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(first, last):
        order[here[codes_of_f[r]]] = <int32_t> r
        here[codes_of_f[r]] += 1


def matrix_products(
    const double[::1, :] H,          # IN  (m, K) outputs of the voters
    const double[::1] value,         # IN  (m)
    double[::1] out,                 # OUT (K) sum over rows of H * value
    int n_threads,
):
    cdef Py_ssize_t j
    for j in prange(H.shape[1], nogil=True, schedule="static", num_threads=n_threads):
        out[j] = sum_of_products(&H[0, j], &value[0], H.shape[0])


# ---------------------------------------------------------------------------------------------
# Sums of random signs along sorted rows, 64 draws at a time
# ---------------------------------------------------------------------------------------------

cdef enum:
    DRAWS = 64         # of a word: one bit of each row's word is one draw's sign
    SAFE_ROWS = 30000  # sums of so many signs fit in 16 bits, of which a register holds twice as many

# Eight signs for every byte: a row adds its signs by eight table look-ups.
cdef int16_t SIGNS[256][8]
cdef int _byte, _bit
for _byte in range(256):
    for _bit in range(8):
        SIGNS[_byte][_bit] = 1 if (_byte >> _bit) & 1 else -1


cdef void _scan_word(
    const int32_t[::1] rows, const uint8_t[::1] may_cut, const uint64_t[::1] word,
    int32_t[::1] total, int32_t[::1] low, int32_t[::1] high,
) noexcept nogil:
    cdef Py_ssize_t i, last, s, g, first = 0, n = rows.shape[0]
    cdef uint64_t signs
    cdef const int16_t* eight
    cdef int16_t here[DRAWS]
    cdef int16_t least[DRAWS]
    cdef int16_t most[DRAWS]
    while first < n:
        last = min(n, first + SAFE_ROWS)
        for s in range(DRAWS):
            here[s] = 0
            least[s] = SAFE_ROWS
            most[s] = -SAFE_ROWS
        for i in range(first, last):
            signs = word[rows[i]]
            for g in range(8):
                eight = SIGNS[(signs >> (8 * g)) & 255]
                for s in range(8):
                    here[8 * g + s] += eight[s]
            if may_cut[i]:
                for s in range(DRAWS):
                    least[s] = min(least[s], here[s])
                    most[s] = max(most[s], here[s])
        for s in range(DRAWS):
            if least[s] <= most[s]:
                low[s] = min(low[s], total[s] + least[s])
                high[s] = max(high[s], total[s] + most[s])
            total[s] += here[s]
        first = last


def scan_signs(
    const int32_t[::1] rows,         # IN  rows in the order of a feature
    const uint8_t[::1] may_cut,      # IN  whether a voter may change its vote after this row
    const uint64_t[:, ::1] words,    # IN  (w, m) random bits: 64 draws of a sign for every row
    int32_t[:, ::1] total,           # IN/OUT (w, 64) sum of the signs of all rows so far
    int32_t[:, ::1] low,             # IN/OUT (w, 64) least sum of the signs of the rows before a cut
    int32_t[:, ::1] high,            # IN/OUT (w, 64) largest one
):
    cdef Py_ssize_t w
    with nogil:
        for w in range(words.shape[0]):
            _scan_word(rows, may_cut, words[w], total[w], low[w], high[w])
