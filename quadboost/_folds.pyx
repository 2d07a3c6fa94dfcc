"""Kernels of cross-validation on plain arrays: count the rows of all folds at once, follow a risk along a run.

Python allocates, the kernels fill, and trust what they are given.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memset

from quadboost._types cimport PREFETCH, code_t, count_t
from quadboost._voters cimport voters_of_bins

cdef enum:
    AHEAD = 16  # rows that are fetched before they are counted

def add_all_but_fold(
    const code_t[:, ::1] codes,      # IN  (m, d)
    const double[::1] mass,          # IN  (m), or None: every row counts once
    const int32_t[::1] rows,         # IN  numbers of the rows to count
    const uint8_t[::1] fold,         # IN  (m) from 1; 0: the row is in no fold
    const int64_t[::1] bin_start, const int64_t[::1] voter_start, const uint8_t[::1] is_level,   # IN  layout of the stumps
    int factor,
    count_t[:, ::1] bins,            # scratch (folds + 1, bins of all features)
    count_t[:, ::1] voters,          # scratch (folds + 2, most voters of a feature)
    count_t[:, ::1] out,             # IN/OUT (folds + 1, K) of all rows, then of all rows but a fold's
):
    """Add factor times the products of every voter with one that is 1 on the given rows and 0 on the others."""
    cdef Py_ssize_t i = 0, f, n = rows.shape[0]
    with nogil:
        memset(&bins[0, 0], 0, bins.shape[0] * bins.shape[1] * sizeof(count_t))
        while i + 4 <= n:
            _count_four(codes, mass, &rows[i], rows[min(i + AHEAD, n - 1)], fold, bin_start, bins)
            i += 4
        while i < n:
            _count_row(codes, mass, rows[i], fold, bin_start, bins)
            i += 1
        for f in range(is_level.shape[0]):
            if voter_start[f + 1] > voter_start[f]:
                _add_feature(bins, bin_start[f], bin_start[f + 1] - bin_start[f] - 2, is_level[f], <count_t> factor, voters, out,
                             voter_start[f], voter_start[f + 1] - voter_start[f])


cdef void _add_feature(
    const count_t[:, ::1] bins, Py_ssize_t first_bin, Py_ssize_t n_cuts, bint is_level, count_t factor,
    count_t[:, ::1] voters, count_t[:, ::1] out, Py_ssize_t first_voter, Py_ssize_t n_voters,
) noexcept nogil:
    """The voters of one feature: of each fold, of all together, and then of all but one."""
    cdef Py_ssize_t k, i, n_folds = bins.shape[0]
    cdef count_t* total = &voters[n_folds, 0]
    cdef count_t* own
    cdef count_t* column
    memset(total, 0, n_voters * sizeof(count_t))
    for k in range(n_folds):
        own = &voters[k, 0]
        memset(own, 0, n_voters * sizeof(count_t))
        voters_of_bins(&bins[k, first_bin], n_cuts, is_level, n_voters > n_cuts, factor, own)
        for i in range(n_voters):
            total[i] += own[i]
    for k in range(n_folds):
        own, column = &voters[k, 0], &out[k, first_voter]
        if k == 0:
            for i in range(n_voters):
                column[i] += total[i]
        else:
            for i in range(n_voters):
                column[i] += total[i] - own[i]


cdef inline void _count_row(
    const code_t[:, ::1] codes, const double[::1] mass, Py_ssize_t r, const uint8_t[::1] fold,
    const int64_t[::1] bin_start, count_t[:, ::1] out,
) noexcept nogil:
    cdef Py_ssize_t f
    cdef count_t weight = 1 if mass is None else <count_t> mass[r]
    cdef count_t* own = &out[fold[r], 0]
    for f in range(codes.shape[1]):
        own[bin_start[f] + codes[r, f]] += weight


cdef inline void _count_four(
    const code_t[:, ::1] codes, const double[::1] mass, const int32_t* rows, Py_ssize_t later, const uint8_t[::1] fold,
    const int64_t[::1] bin_start, count_t[:, ::1] out,
) noexcept nogil:
    """Four rows at a time: a feature is looked up once for all. One that is needed later is on its way."""
    cdef Py_ssize_t f, start, d = codes.shape[1], r0 = rows[0], r1 = rows[1], r2 = rows[2], r3 = rows[3]
    cdef const code_t* c0 = &codes[r0, 0]
    cdef const code_t* c1 = &codes[r1, 0]
    cdef const code_t* c2 = &codes[r2, 0]
    cdef const code_t* c3 = &codes[r3, 0]
    cdef count_t* o0 = &out[fold[r0], 0]
    cdef count_t* o1 = &out[fold[r1], 0]
    cdef count_t* o2 = &out[fold[r2], 0]
    cdef count_t* o3 = &out[fold[r3], 0]
    cdef count_t w0 = 1, w1 = 1, w2 = 1, w3 = 1
    PREFETCH(&codes[later, 0])
    if mass is not None:
        w0, w1, w2, w3 = <count_t> mass[r0], <count_t> mass[r1], <count_t> mass[r2], <count_t> mass[r3]
    for f in range(d):
        start = bin_start[f]
        o0[start + c0[f]] += w0
        o1[start + c1[f]] += w1
        o2[start + c2[f]] += w2
        o3[start + c3[f]] += w3


cdef double _product(
    const count_t* column, const count_t* less, const int64_t* voters, const double* weight, Py_ssize_t n
) noexcept nogil:
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += weight[i] * (column[voters[i]] - less[voters[i]])
        s1 += weight[i + 1] * (column[voters[i + 1]] - less[voters[i + 1]])
        s2 += weight[i + 2] * (column[voters[i + 2]] - less[voters[i + 2]])
        s3 += weight[i + 3] * (column[voters[i + 3]] - less[voters[i + 3]])
        i += 4
    while i < n:
        s0 += weight[i] * (column[voters[i]] - less[voters[i]])
        i += 1
    return (s0 + s1) + (s2 + s3)


def follow_risk(
    const int64_t[::1] voter,        # IN  (n) whose weight changes
    const double[::1] total,         # IN  (n) the weight it then has
    Py_ssize_t first,                # IN  the first change to follow
    const uintptr_t[::1] address,    # IN  (K) where each voter's Gram column of sums is; 0: not in memory
    const uintptr_t[::1] less,       # IN  (K) where one is that is to be subtracted from it
    bint counts, double total_weight,
    const double[::1] first_edge, const double[::1] mean, const double[::1] eta, const double[::1] centre,  # IN  (K)
    int64_t[::1] place,              # IN/OUT (K) where a voter is in `drawn`; -1: nowhere
    int64_t[::1] drawn,              # IN/OUT the voters so far
    double[::1] weight,              # IN/OUT and their weights
    double[::1] state,               # IN/OUT risk, mean residual, by how much the intercept fell, number of voters
    double[::1] risk,                # OUT (n) after each change
):
    """Follow the risk on one set of rows as weights change; returns how far it came: further needs a column.

    The edge of one voter is all that a change needs, and it takes a look at the voters drawn so far, not at all.
    """
    cdef Py_ssize_t t = first, j, k, n_drawn = <Py_ssize_t> state[3]
    cdef double here = state[0], residual_mean = state[1], fallen = state[2]
    cdef double delta, edge, own, square, product
    with nogil:
        while t < voter.shape[0]:
            j = voter[t]
            if address[j] == 0 or less[j] == 0:
                break
            if counts:
                product = _product(
                    <const int32_t*> address[j], <const int32_t*> less[j], &drawn[0], &weight[0], n_drawn)
            else:
                product = _product(
                    <const double*> address[j], <const double*> less[j], &drawn[0], &weight[0], n_drawn)
            edge = first_edge[j] + mean[j] * fallen - product / total_weight
            k = place[j]
            if k < 0:
                k = place[j] = n_drawn
                drawn[k], weight[k] = j, 0.0
                n_drawn += 1
            delta = total[t] - weight[k]
            weight[k] = total[t]
            own = edge - centre[j] * residual_mean
            square = eta[j] - centre[j] * (2 * mean[j] - centre[j])
            here -= delta * (2 * own - delta * square)
            residual_mean -= delta * (mean[j] - centre[j])
            fallen += delta * centre[j]
            risk[t] = here
            t += 1
    state[0], state[1], state[2], state[3] = here, residual_mean, fallen, n_drawn
    return t
