"""Kernels of quantiles: a sorted column, divided into bins of nearly equal mass."""
cimport numpy as cnp
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint8_t

from quadboost.kernels.types cimport real_t

cnp.import_array()


def distinct_runs(
    cnp.ndarray values,              # IN  (n) ascending, float32 or float64, one after the other
    int64_t[::1] before,             # OUT (n + 1) how many values come before each distinct one, and in all
):
    """How many distinct values there are."""
    cdef const void* data = cnp.PyArray_DATA(values)
    cdef Py_ssize_t n = values.shape[0]
    if cnp.PyArray_TYPE(values) == cnp.NPY_FLOAT32:
        return _distinct_runs(<const float*> data, n, &before[0])
    return _distinct_runs(<const double*> data, n, &before[0])


cdef Py_ssize_t _distinct_runs(const real_t* values, Py_ssize_t n, int64_t* before) noexcept nogil:
    cdef Py_ssize_t i, k = 0
    before[0] = 0
    for i in range(1, n):
        before[k + 1] = i  # without a branch: overwritten until the value changes
        k += values[i] != values[i - 1]
    before[k + 1] = n
    return k + 1


cdef struct mass_t:                  # a column as the mass of its values, one after the other; borders are sums of mass
    const int64_t* before            # (n + 1) mass of the atoms before each atom
    const uint8_t* is_dense          # (n) whether there are values within the atom, with borders anywhere
    Py_ssize_t n
    const int64_t* alone_begin       # (n_alone) borders of the values that have a bin of their own
    const int64_t* alone_end
    Py_ssize_t n_alone


cdef inline mass_t _column(
    const int64_t[::1] before, const uint8_t[::1] is_dense, const int64_t[:, ::1] alone
) noexcept nogil:
    cdef mass_t column
    column.before, column.is_dense, column.n = &before[0], &is_dense[0], before.shape[0] - 1
    column.n_alone = alone.shape[1]
    column.alone_begin = column.alone_end = NULL
    if column.n_alone:
        column.alone_begin, column.alone_end = &alone[0, 0], &alone[1, 0]
    return column


cdef inline Py_ssize_t _first_at_least(const int64_t* values, Py_ssize_t n, int64_t wanted) noexcept nogil:
    """The first place of an ascending array whose value is not below the wanted one."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t _atom_at(const mass_t* column, int64_t mass) noexcept nogil:
    """The atom that holds what comes after that mass; none has a mass below 1."""
    if mass < column.n and column.before[mass] == mass:  # all up to there have a mass of 1
        return mass
    return _first_at_least(column.before, column.n + 1, mass + 1) - 1


cdef inline int64_t _border_until(const mass_t* column, int64_t mass) noexcept nogil:
    """The last border up to that mass."""
    cdef Py_ssize_t atom
    if mass >= column.before[column.n]:
        return column.before[column.n]
    atom = _atom_at(column, mass)
    return mass if column.is_dense[atom] else column.before[atom]


cdef inline int64_t _border_from(const mass_t* column, int64_t mass) noexcept nogil:
    """The first border from that mass on."""
    cdef Py_ssize_t atom
    if mass <= 0:
        return 0
    if mass > column.before[column.n]:
        return column.before[column.n]
    atom = _atom_at(column, mass - 1)
    return mass if column.is_dense[atom] else column.before[atom + 1]


cdef int64_t _furthest_end(const mass_t* column, int64_t begin, int64_t most) noexcept nogil:
    """Where a bin that begins there must end: at a value that stands alone, or when it has `most` mass."""
    cdef Py_ssize_t a = _first_at_least(column.alone_begin, column.n_alone, begin)
    cdef int64_t end
    if a < column.n_alone and column.alone_begin[a] == begin:
        return column.alone_end[a]
    end = _border_until(column, begin + most)
    if a < column.n_alone:
        end = min(end, column.alone_begin[a])
    return end if end > begin else _border_from(column, begin + 1)


cdef int64_t _furthest_begin(const mass_t* column, int64_t end, int64_t most) noexcept nogil:
    """Where a bin that ends there must begin."""
    cdef Py_ssize_t a = _first_at_least(column.alone_begin, column.n_alone, end) - 1
    cdef int64_t begin
    if a >= 0 and column.alone_end[a] == end:
        return column.alone_begin[a]
    begin = _border_from(column, end - most)
    if a >= 0:
        begin = max(begin, column.alone_end[a])
    return begin if begin < end else _border_until(column, end - 1)


cdef bint _fits(const mass_t* column, Py_ssize_t n_bins, int64_t most) noexcept nogil:
    """Whether n_bins are enough when no bin of several values may have more than `most` mass."""
    cdef int64_t begin = 0, total = column.before[column.n]
    cdef Py_ssize_t used = 0
    while begin < total and used <= n_bins:
        begin = _furthest_end(column, begin, most)
        used += 1
    return used <= n_bins


cdef int64_t _least_most(const mass_t* column, Py_ssize_t n_bins, int64_t fair) noexcept nogil:
    """The smallest mass that fits; usually it is near the fair share of a bin."""
    cdef int64_t low = 0, high = fair, step = 1, middle
    while not _fits(column, n_bins, high):
        low = high + 1
        high += step
        step *= 2
    step = 1
    while high - step >= low and _fits(column, n_bins, high - step):
        high -= step
        step *= 2
    low = max(low, high - step + 1)
    while low < high:
        middle = low + (high - low) // 2
        if _fits(column, n_bins, middle):
            high = middle
        else:
            low = middle + 1
    return high


def quantile_ends(
    const int64_t[::1] before,       # IN  (n + 1) mass of the atoms before each atom: a value, or several neighbours
    const uint8_t[::1] is_dense,     # IN  (n) whether the atom has several values; these are taken to lie densely
    const int64_t[:, ::1] alone,     # IN  (2, a) mass before and until the values that have a bin of their own;
                                     #     n_bins must suffice for that
    Py_ssize_t n_bins,
    int64_t[::1] latest,             # OUT (n_bins + 1) with b bins left, a bin must reach at least as far as latest[b]
    int64_t[::1] out,                # OUT (n_bins) mass until the end of each bin
):
    """Divide a column into bins of nearly equal mass; returns how many bins, and the most mass of one of several values.

    No bin of several values is heavier than it must be; within that, each takes its fair share of what is left.
    """
    cdef mass_t column = _column(before, is_dense, alone)
    cdef Py_ssize_t b = 0, a = 0, shared = n_bins - column.n_alone
    cdef int64_t total = before[column.n], mass = total, begin = 0, end, most, used, previous
    cdef double fair
    for b in range(column.n_alone):
        mass -= column.alone_end[b] - column.alone_begin[b]
    with nogil:
        most = _least_most(&column, n_bins, mass // max(shared, 1))
        latest[0] = total
        for b in range(n_bins):
            latest[b + 1] = _furthest_begin(&column, latest[b], most) if latest[b] > 0 else 0
        b = 0
        while begin < total:
            end = _furthest_end(&column, begin, most)
            if a < column.n_alone and column.alone_begin[a] == begin:
                a += 1
            else:
                fair = begin + <double> mass / shared if shared > 1 else total
                used = _border_from(&column, <int64_t> ceil(fair))
                previous = _border_until(&column, used - 1)
                if previous > begin and fair - previous <= used - fair:
                    used = previous
                used = max(used, latest[n_bins - b - 1])
                end = min(end, used if used > begin else _border_from(&column, begin + 1))
                mass -= end - begin
                shared -= 1
            out[b] = end
            b += 1
            begin = end
    return b, most


def furthest_ends(
    const int64_t[::1] before, const uint8_t[::1] is_dense, const int64_t[:, ::1] alone,   # IN  as above
    int64_t most,
    int64_t[::1] out,                # OUT the ends of the first bins, when each has as much as it may
):
    """Returns how many bins there are, or were looked at."""
    cdef mass_t column = _column(before, is_dense, alone)
    cdef int64_t end = 0
    cdef Py_ssize_t b = 0
    with nogil:
        while end < before[column.n] and b < out.shape[0]:
            end = out[b] = _furthest_end(&column, end, most)
            b += 1
    return b
