"""Between bins and voters: from sums per bin to sums per voter, and from weights of voters to values of bins."""
from cython.parallel cimport prange
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

cdef enum:
    VOTERS_FOR_THREADS = 500000  # below which a second thread costs more than it brings


cdef class Layout:
    """Where the bins and the voters of every column are."""

    def __init__(self, bin_start, voter_start, n_nested, low, high, whole):
        """`bin_start` and `voter_start` have an entry per column and one more; for the others see voters.h."""
        self._arrays = (bin_start, voter_start, n_nested, low, high, whole)
        self._bin_start, self._voter_start, self._n_nested = bin_start, voter_start, n_nested
        self._low, self._high, self._whole = low, high, whole

    def __reduce__(self):
        return Layout, self._arrays


cdef intervals_t _intervals(Layout layout, Py_ssize_t f) noexcept nogil:
    """Of a column that has voters."""
    cdef intervals_t of
    cdef Py_ssize_t first = layout._voter_start[f]
    of.n_voters, of.n_nested = layout._voter_start[f + 1] - first, layout._n_nested[f]
    of.low, of.high, of.whole = &layout._low[first], &layout._high[first], &layout._whole[first]
    return of


cdef inline void _run_along(exact_t* bins, Py_ssize_t n) noexcept nogil:
    """Make sums per bin running sums."""
    if exact_t is int32_t:
        run_along_counts(bins, n)
    elif exact_t is int64_t:
        run_along_whole_sums(bins, n)
    else:
        run_along_sums(bins, n)


cdef inline void _add_voters(const exact_t* running, intervals_t of, exact_t factor, exact_t* out) noexcept nogil:
    """Add factor times the sum of value * h for every voter of a column, from running sums over all bins."""
    if exact_t is int32_t:
        add_voters_counts(running, of, factor, out)
    elif exact_t is int64_t:
        add_voters_whole_sums(running, of, factor, out)
    else:
        add_voters_sums(running, of, factor, out)


cdef void run_along_columns(Layout layout, exact_t* bins, int n_threads) noexcept nogil:
    """Make sums per bin of all columns running sums."""
    cdef Py_ssize_t f, d = layout._n_nested.shape[0]
    cdef const int64_t* start = &layout._bin_start[0]
    if n_threads == 1 or start[d] < VOTERS_FOR_THREADS:
        for f in range(d):
            _run_along(bins + start[f], start[f + 1] - start[f])
    else:
        for f in prange(d, schedule="dynamic", num_threads=n_threads):
            _run_along(bins + start[f], start[f + 1] - start[f])


cdef void add_voters(Layout layout, const exact_t* running, exact_t factor, exact_t* out, int n_threads) noexcept nogil:
    """Add factor times the sum of value * h for every voter, from running sums."""
    cdef Py_ssize_t f, d = layout._n_nested.shape[0]
    cdef const int64_t* start = &layout._voter_start[0]
    if n_threads == 1 or start[d] < VOTERS_FOR_THREADS:
        for f in range(d):
            if start[f + 1] > start[f]:
                _add_voters(running, _intervals(layout, f), factor, out + start[f])
    else:
        for f in prange(d, schedule="dynamic", num_threads=n_threads):
            if start[f + 1] > start[f]:
                _add_voters(running, _intervals(layout, f), factor, out + start[f])


def voter_sums(
    Layout layout,
    int64_t[::1] bins,               # IN/OUT sums per bin of all columns; then running sums
    int64_t[::1] out,                # IN/OUT (K) sums per voter are added
):
    """Add the sum of value * h for every voter, from sums of value per bin."""
    if out.shape[0] > 0:
        run_along_columns(layout, &bins[0], 1)
        add_voters(layout, &bins[0], <int64_t> 1, &out[0], 1)


def step_values(
    Layout layout,
    const int64_t[::1] columns,      # IN  (n) some columns
    const int64_t[::1] start,        # IN  (n) where the bins of each begin in `out`
    const double[:, ::1] weight,     # IN  (K, n_outputs) of all voters
    const double[:, ::1] at_values,  # IN  (n, n_outputs) the sum of those that abstain where the value is missing
    double[:, ::1] out,              # IN/OUT (bins of these columns, n_outputs); zeroed by the caller
):
    """What weighted voters say in each bin: twice the weights of those whose interval has it, less the weights of all.

    Weights are added in the order of the voters.
    """
    cdef Py_ssize_t i, j, k, f, b, shift, missing, first
    cdef double inside, at_missing
    cdef intervals_t of
    for i in range(columns.shape[0]):
        f = columns[i]
        if layout._voter_start[f] == layout._voter_start[f + 1]:
            continue
        of, first = _intervals(layout, f), layout._voter_start[f]
        shift = start[i] - layout._bin_start[f]
        missing = shift + layout._bin_start[f + 1] - 1
        for k in range(weight.shape[1]):
            inside = 0
            for j in range(of.n_nested):
                inside += weight[first + j, k]
                out[shift + of.low[j] + 1, k] = inside
            for j in range(of.n_nested, of.n_voters):
                for b in range(shift + of.low[j] + 1, shift + of.high[j] + 1):
                    out[b, k] += weight[first + j, k]
            j = of.n_voters - 1
            at_missing = weight[first + j, k] if shift + of.whole[j] == missing else 0
            for b in range(start[i], missing):
                out[b, k] = 2 * out[b, k] - (at_values[i, k] + at_missing)
            out[missing, k] = 2 * out[missing, k] - at_missing
