"""Kernels of boosting: sums at the leaves of a tree, steps that a row had no part in, and what squares fall by.

Sums are of whole numbers, as all sums over rows. Python allocates, the kernels fill; arguments are marked IN / OUT.
"""
from libc.math cimport copysign, fabs, ldexp
from libc.stdint cimport int64_t, uint32_t

cdef enum:
    INTEGERS = 52  # doubles from 2**52 on are whole


cdef inline int64_t _nearest(double x) noexcept nogil:
    """The nearest whole number, of two the even one; quicker than a call of `rint`."""
    cdef double whole = copysign(<double> (<int64_t> 1 << INTEGERS), x)
    return <int64_t> ((x + whole) - whole if fabs(x) < fabs(whole) else x)


def largest_of(
    const double[:, ::1] value,      # IN  (m, k)
    double[::1] out,                 # IN/OUT (k) the largest absolute value of each column, or what is there already
):
    cdef Py_ssize_t r, i
    with nogil:
        for r in range(value.shape[0]):
            for i in range(value.shape[1]):
                out[i] = max(out[i], fabs(value[r, i]))


def leaf_sums(
    const uint32_t[::1] node,        # IN  (m) the leaf of each row
    const double[:, ::1] value,      # IN  (m, k)
    const int64_t[::1] bits,         # IN  (k) values are rounded to whole numbers after so many bits
    const double[::1] factor,        # IN  (m) times the value before that; empty: 1
    const int64_t[::1] count,        # IN  (m) times the whole number; empty: 1
    int64_t[:, ::1] out,             # OUT (n_nodes, k) zeroed by the caller
):
    cdef Py_ssize_t r, i
    cdef int64_t times = 1
    cdef double share = 1.0, half, rest
    with nogil:
        for i in range(value.shape[1]):
            half, rest = ldexp(1.0, <int> (bits[i] // 2)), ldexp(1.0, <int> (bits[i] - bits[i] // 2))  # both are finite
            for r in range(value.shape[0]):
                if factor.shape[0]:
                    share = factor[r]
                if count.shape[0]:
                    times = count[r]
                out[node[r], i] += times * _nearest(value[r, i] * half * rest * share)


def steps_of_others(
    const uint32_t[::1] node,        # IN  (m) the leaf of each row
    const double[:, ::1] pull, const double[:, ::1] bend,             # IN  (m, k)
    const double[:, ::1] sum_of_pulls, const double[:, ::1] sum_of_bends,   # IN  (n_nodes, k)
    const double[::1] weight,        # IN  (m) of a row in these sums; empty: 1
    double rounding,                 # of a sum of bends: no more than that is left where a row is alone
    double shrinkage,
    double[:, ::1] out,              # OUT (m, k) the step at the leaf of each row, had the row no part in it
):
    cdef Py_ssize_t r, i, leaf
    cdef double share = 1.0, rest
    with nogil:
        for r in range(node.shape[0]):
            leaf = node[r]
            if weight.shape[0]:
                share = weight[r]
            for i in range(pull.shape[1]):
                rest = sum_of_bends[leaf, i] - share * bend[r, i]
                if rest > rounding * sum_of_bends[leaf, i]:
                    out[r, i] = shrinkage * ((sum_of_pulls[leaf, i] - share * pull[r, i]) / rest)
                else:
                    out[r, i] = 0.0


def square_falls(
    const double[:, ::1] before, const double[:, ::1] after,   # IN  (m, k)
    double[:] out,                   # OUT (m) by how much the sum of the squares of each row fell
):
    cdef Py_ssize_t r, i
    cdef double fall
    with nogil:
        for r in range(out.shape[0]):
            fall = 0.0
            for i in range(before.shape[1]):
                fall += (before[r, i] - after[r, i]) * (before[r, i] + after[r, i])
            out[r] = fall
