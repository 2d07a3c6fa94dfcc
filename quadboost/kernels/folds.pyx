"""Kernels of cross-validation on plain arrays: count the rows of all folds at once, follow a risk along a run.

Python allocates, the kernels fill, and trust what they are given.
"""
cimport numpy as cnp
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.string cimport memset

from quadboost.kernels.types cimport PREFETCH, code_t, count_t
from quadboost.kernels.voters cimport voters_of_bins

import numpy as np

cnp.import_array()

cdef extern from "folds.h":
    void add_counts(int32_t*, const int32_t*, Py_ssize_t) noexcept nogil
    void add_sums(double*, const double*, Py_ssize_t) noexcept nogil
    void write_shorts(int16_t*, int, const int16_t*, const int32_t*, Py_ssize_t) noexcept nogil
    void write_counts(int32_t*, int, const int32_t*, const int32_t*, Py_ssize_t) noexcept nogil
    void write_sums(double*, int, const double*, const double*, Py_ssize_t) noexcept nogil

cdef enum:
    AHEAD = 16  # rows that are fetched before they are counted

ctypedef fused kept_t:
    int16_t
    int32_t
    double


cdef class FoldCounter:
    """Joint counts of some rows with every bin of every feature, as products with every voter: in all, and by fold.

    Not to be shared by threads: its scratch memory is its own.
    """
    cdef cnp.ndarray _codes, _mass, _bins, _voters
    cdef const int64_t[::1] _bin_start, _voter_start
    cdef const uint8_t[::1] _is_level, _fold
    cdef Py_ssize_t _n_bins, _most_voters, _n_voters
    cdef int _first_fold, _held_out_bytes

    def __init__(
        self, cnp.ndarray codes, cnp.ndarray mass, bin_start, voter_start, is_level, fold, int n_folds, int held_out_bytes
    ):
        """`mass` may be None: every row counts once. `fold` is the number of each row's fold, from 1; 0: it has none."""
        self._codes, self._mass, self._fold = codes, mass, fold
        self._bin_start, self._voter_start, self._is_level = bin_start, voter_start, is_level
        self._n_bins, self._n_voters = bin_start[codes.shape[1]], voter_start[codes.shape[1]]
        self._most_voters = np.diff(voter_start).max(initial=1)
        dtype = np.int32 if mass is None else np.float64
        self._bins = np.zeros((n_folds + 1, self._n_bins), dtype=dtype)
        self._voters = np.empty((2, self._most_voters), dtype=dtype)
        self._first_fold, self._held_out_bytes = fold.min(), held_out_bytes

    def write(self, cnp.ndarray rows, int factor, int sign, cnp.ndarray known, cnp.ndarray out):
        """Write sign times what is known plus factor times the products with a voter that is 1 on some rows, else 0.

        `known` and `out` are the bytes of K numbers for all rows, int32 or float64, and of K for the rows of each fold.
        """
        cdef int size = cnp.PyArray_ITEMSIZE(self._codes)
        cdef const int32_t* order = <const int32_t*> cnp.PyArray_DATA(rows)
        cdef Py_ssize_t n = rows.shape[0], whole_bytes = self._n_voters * cnp.PyArray_ITEMSIZE(self._bins)
        cdef char* old = <char*> cnp.PyArray_DATA(known)
        cdef char* old_held = old + whole_bytes
        cdef char* new = <char*> cnp.PyArray_DATA(out)
        cdef char* new_held = new + whole_bytes
        with nogil:
            if size == 1:
                self._count(<const uint8_t*> cnp.PyArray_DATA(self._codes), order, n)
            elif size == 2:
                self._count(<const uint16_t*> cnp.PyArray_DATA(self._codes), order, n)
            else:
                self._count(<const uint32_t*> cnp.PyArray_DATA(self._codes), order, n)
            if self._mass is not None:
                self._write(<double> factor, sign, <const double*> old, <const double*> old_held,
                            <double*> new, <double*> new_held)
            elif self._held_out_bytes == 2:
                self._write(<int32_t> factor, sign, <const int32_t*> old, <const int16_t*> old_held,
                            <int32_t*> new, <int16_t*> new_held)
            else:
                self._write(<int32_t> factor, sign, <const int32_t*> old, <const int32_t*> old_held,
                            <int32_t*> new, <int32_t*> new_held)

    cdef void _count(self, const code_t* codes, const int32_t* rows, Py_ssize_t n) noexcept nogil:
        if self._mass is None:
            self._count_rows(codes, <const double*> NULL, rows, n, <int32_t*> cnp.PyArray_DATA(self._bins))
        else:
            self._count_rows(codes, <const double*> cnp.PyArray_DATA(self._mass), rows, n,
                             <double*> cnp.PyArray_DATA(self._bins))

    cdef void _count_rows(
        self, const code_t* codes, const double* mass, const int32_t* rows, Py_ssize_t n, count_t* bins
    ) noexcept nogil:
        """Count rows in the bins of their folds, four at a time: a feature is looked up once for all."""
        cdef Py_ssize_t i = 0, f, start, d = self._is_level.shape[0], n_bins = self._n_bins
        cdef const int64_t* bin_start = &self._bin_start[0]
        cdef const uint8_t* fold = &self._fold[0]
        cdef const code_t* c0
        cdef const code_t* c1
        cdef const code_t* c2
        cdef const code_t* c3
        cdef count_t* o0
        cdef count_t* o1
        cdef count_t* o2
        cdef count_t* o3
        cdef count_t w0 = 1, w1 = 1, w2 = 1, w3 = 1
        while i + 4 + AHEAD <= n:
            c0, c1 = _row_soon(codes, d, rows + i), _row_soon(codes, d, rows + i + 1)
            c2, c3 = _row_soon(codes, d, rows + i + 2), _row_soon(codes, d, rows + i + 3)
            o0, o1 = bins + fold[rows[i]] * n_bins, bins + fold[rows[i + 1]] * n_bins
            o2, o3 = bins + fold[rows[i + 2]] * n_bins, bins + fold[rows[i + 3]] * n_bins
            if mass != NULL:
                w0, w1 = <count_t> mass[rows[i]], <count_t> mass[rows[i + 1]]
                w2, w3 = <count_t> mass[rows[i + 2]], <count_t> mass[rows[i + 3]]
            for f in range(d):
                start = bin_start[f]
                o0[start + c0[f]] += w0
                o1[start + c1[f]] += w1
                o2[start + c2[f]] += w2
                o3[start + c3[f]] += w3
            i += 4
        while i < n:
            c0, o0 = codes + rows[i] * d, bins + fold[rows[i]] * n_bins
            if mass != NULL:
                w0 = <count_t> mass[rows[i]]
            for f in range(d):
                o0[bin_start[f] + c0[f]] += w0
            i += 1

    cdef void _write(
        self, count_t factor, int sign, const count_t* known, const kept_t* known_held, count_t* out, kept_t* out_held
    ) noexcept nogil:
        """From bins to voters, one feature after the other; all bins are empty then."""
        cdef Py_ssize_t f, k, n, n_cuts, here, n_folds = self._bins.shape[0] - 1
        cdef count_t* bins = <count_t*> cnp.PyArray_DATA(self._bins)
        cdef count_t* own = <count_t*> cnp.PyArray_DATA(self._voters)
        cdef count_t* total = own + self._most_voters
        for f in range(self._is_level.shape[0]):
            here, n = self._voter_start[f], self._voter_start[f + 1] - self._voter_start[f]
            n_cuts = self._bin_start[f + 1] - self._bin_start[f] - 2
            if n > 0:
                memset(total, 0, n * sizeof(count_t))
                for k in range(self._first_fold, n_folds + 1):
                    memset(own, 0, n * sizeof(count_t))
                    voters_of_bins(bins + k * self._n_bins + self._bin_start[f], n_cuts, self._is_level[f], n > n_cuts,
                                   factor, own)
                    _add(total, own, n)
                    if k > 0:
                        _write_kept(out_held + (k - 1) * self._n_voters + here, sign,
                                    known_held + (k - 1) * self._n_voters + here, own, n)
                _write_kept(out + here, sign, known + here, total, n)
        memset(bins, 0, (n_folds + 1) * self._n_bins * sizeof(count_t))


cdef inline const code_t* _row_soon(const code_t* codes, Py_ssize_t d, const int32_t* row) noexcept nogil:
    """The codes of a row, while those of the one that is needed AHEAD rows later are on their way."""
    PREFETCH(codes + row[AHEAD] * d)
    return codes + row[0] * d


cdef inline void _add(count_t* total, const count_t* own, Py_ssize_t n) noexcept nogil:
    if count_t is int32_t:
        add_counts(total, own, n)
    else:
        add_sums(total, own, n)


cdef inline void _write_kept(
    kept_t* out, int sign, const kept_t* known, const count_t* new, Py_ssize_t n
) noexcept nogil:
    if count_t is int32_t and kept_t is int16_t:
        write_shorts(out, sign, known, new, n)
    elif count_t is int32_t and kept_t is int32_t:
        write_counts(out, sign, known, new, n)
    elif count_t is double and kept_t is double:
        write_sums(out, sign, known, new, n)


cdef double _product(
    const kept_t* column, const int64_t* voters, const double* weight, Py_ssize_t n
) noexcept nogil:
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += weight[i] * column[voters[i]]
        s1 += weight[i + 1] * column[voters[i + 1]]
        s2 += weight[i + 2] * column[voters[i + 2]]
        s3 += weight[i + 3] * column[voters[i + 3]]
        i += 4
    while i < n:
        s0 += weight[i] * column[voters[i]]
        i += 1
    return (s0 + s1) + (s2 + s3)


def follow_risk(
    const int64_t[::1] voter,        # IN  (n) whose weight changes
    const double[::1] total,         # IN  (n) the weight it then has
    Py_ssize_t first,                # IN  the first change to follow
    const uintptr_t[::1] address,    # IN  (K) where each voter's Gram column of sums is; 0: not in memory
    int itemsize,                    # IN  bytes of a number in it: 2, 4, or 8 for a double
    double total_weight,
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
            if address[j] == 0:
                break
            if itemsize == 2:
                product = _product(<const int16_t*> address[j], &drawn[0], &weight[0], n_drawn)
            elif itemsize == 4:
                product = _product(<const int32_t*> address[j], &drawn[0], &weight[0], n_drawn)
            else:
                product = _product(<const double*> address[j], &drawn[0], &weight[0], n_drawn)
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
