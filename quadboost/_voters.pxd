"""What the voters of a feature say in its bins.

Threshold voter i: -1 on bins 0..i, +1 on bins i+1..k; level voter i: +1 on bin i+1, else -1; both 0 on the bin of
missing values. Missing voter: +1 there, else -1.
"""

from quadboost._types cimport exact_t


cdef inline void voters_of_bins(
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
