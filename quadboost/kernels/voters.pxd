"""From sums per bin to sums per voter; see voters.h."""

from libc.stdint cimport int32_t, int64_t

from quadboost.kernels.types cimport exact_t

cdef extern from "voters.h":
    ctypedef struct intervals_t:
        const int32_t* low
        const int32_t* high
        const int32_t* whole
        Py_ssize_t n_nested
        Py_ssize_t n_voters
    void run_along_counts(int32_t*, Py_ssize_t) noexcept nogil
    void run_along_whole_sums(int64_t*, Py_ssize_t) noexcept nogil
    void run_along_sums(double*, Py_ssize_t) noexcept nogil
    void add_voters_counts(const int32_t*, intervals_t, int32_t, int32_t*) noexcept nogil
    void add_voters_whole_sums(const int64_t*, intervals_t, int64_t, int64_t*) noexcept nogil
    void add_voters_sums(const double*, intervals_t, double, double*) noexcept nogil


cdef inline void run_along(exact_t* bins, Py_ssize_t n) noexcept nogil:
    """Make sums per bin running sums."""
    if exact_t is int32_t:
        run_along_counts(bins, n)
    elif exact_t is int64_t:
        run_along_whole_sums(bins, n)
    else:
        run_along_sums(bins, n)


cdef inline void add_voters(const exact_t* running, intervals_t of, exact_t factor, exact_t* out) noexcept nogil:
    """Add factor times the sum of value * h for every voter of a column, from running sums over all bins."""
    if exact_t is int32_t:
        add_voters_counts(running, of, factor, out)
    elif exact_t is int64_t:
        add_voters_whole_sums(running, of, factor, out)
    else:
        add_voters_sums(running, of, factor, out)
