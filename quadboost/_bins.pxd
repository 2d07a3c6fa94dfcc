"""How the kernels find the bin of a value: through an index of buckets (see bins.py)."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy


cdef enum:
    MOST_ROWS = 1024


cdef struct BinIndex:
    const double* cuts      # ascending, then +inf
    const int32_t* place    # the number of cuts before each bucket
    Py_ssize_t n_cuts
    Py_ssize_t last_bucket
    double low, scale       # bucket = (x - low) * scale, if shift is negative
    int64_t low_key
    int shift               # else bucket = (key of x - low_key) >> shift


cdef inline int64_t _key(double x) noexcept nogil:
    """An integer that grows with x: of a double's bits, the sign's complement apart."""
    cdef int64_t bits
    memcpy(&bits, &x, sizeof(bits))
    return bits ^ ((bits >> 63) & <int64_t> 0x7FFFFFFFFFFFFFFF)


cdef inline BinIndex bin_index_of(
    const double[::1] cuts, const int64_t[::1] cut_start, const int32_t[::1] place, const int64_t[::1] place_start,
    const double[::1] low, const double[::1] scale, const int32_t[::1] shift, Py_ssize_t f,
) noexcept nogil:
    cdef BinIndex index
    index.cuts = &cuts[cut_start[f]]
    index.n_cuts = cut_start[f + 1] - cut_start[f] - 1
    index.place = &place[place_start[f]]
    index.last_bucket = place_start[f + 1] - place_start[f] - 2
    index.low = low[f]
    index.scale = scale[f]
    index.shift = shift[f]
    index.low_key = _key(low[f])
    return index


cdef inline Py_ssize_t bin_of(double x, BinIndex index) noexcept nogil:
    """The number of cuts below x; n_cuts + 1 for NaN."""
    cdef Py_ssize_t bucket, b, left, half
    cdef double place
    cdef int64_t key
    cdef uint64_t far
    if index.shift < 0:
        place = (x - index.low) * index.scale
        place = place if place > 0 else 0  # also for NaN
        bucket = <Py_ssize_t> (place if place < index.last_bucket else index.last_bucket)
    else:
        key = _key(x)
        far = (<uint64_t> key - <uint64_t> index.low_key) >> index.shift if key > index.low_key else 0
        bucket = <Py_ssize_t> (far if far < <uint64_t> index.last_bucket else <uint64_t> index.last_bucket)
    b = index.place[bucket]
    left = index.place[bucket + 1] - b
    if left <= 1:
        b += x > index.cuts[b]
    else:
        while left > 1:
            half = left >> 1
            b += half * (x > index.cuts[b + half - 1])
            left -= half
        b += x > index.cuts[b]
    return b if x == x else index.n_cuts + 1


cdef inline Py_ssize_t rows_of_block(Py_ssize_t n_columns) noexcept nogil:
    """Rows handled together, few enough that a row-major X is read from memory once."""
    cdef Py_ssize_t rows = 4096 // n_columns if n_columns > 0 else 4096
    return 16 if rows < 16 else MOST_ROWS if rows > MOST_ROWS else rows
