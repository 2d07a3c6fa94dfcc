"""From sums per bin to sums per voter, for every type of sum."""

from libc.stdint cimport int32_t, int64_t

from quadboost.kernels.types cimport exact_t

cdef extern from "voters.h":
    void add_voters_of_counts(const int32_t*, Py_ssize_t, bint, bint, int32_t, int32_t*) noexcept nogil
    void add_voters_of_whole_sums(const int64_t*, Py_ssize_t, bint, bint, int64_t, int64_t*) noexcept nogil
    void add_voters_of_sums(const double*, Py_ssize_t, bint, bint, double, double*) noexcept nogil


cdef inline void voters_of_bins(
    const exact_t* bins, Py_ssize_t n_cuts, bint is_level, bint has_missing, exact_t factor, exact_t* out
) noexcept nogil:
    """Add factor times the sum of value * h over rows, for every voter of a feature, from sums of value per bin."""
    if exact_t is int32_t:
        add_voters_of_counts(bins, n_cuts, is_level, has_missing, factor, out)
    elif exact_t is int64_t:
        add_voters_of_whole_sums(bins, n_cuts, is_level, has_missing, factor, out)
    else:
        add_voters_of_sums(bins, n_cuts, is_level, has_missing, factor, out)
