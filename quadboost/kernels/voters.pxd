"""See voters.pyx."""

from libc.stdint cimport int32_t, int64_t

from quadboost.kernels.types cimport exact_t


cdef class Layout:
    cdef const int64_t[::1] _bin_start, _voter_start, _n_nested
    cdef const int32_t[::1] _low, _high, _whole
    cdef tuple _arrays


cdef void run_along_columns(Layout layout, exact_t* bins, int n_threads) noexcept nogil
cdef void add_voters(Layout layout, const exact_t* running, exact_t factor, exact_t* out, int n_threads) noexcept nogil
