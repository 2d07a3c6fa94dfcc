"""How the kernels find the bins of values: see _bins.h, and bins.py."""

from libc.stdint cimport int32_t, int64_t

cdef extern from "bins.h":
    enum:
        ROWS_OF_BLOCK

    ctypedef struct BucketRule:
        int64_t first_cut
        int64_t first_place
        double low
        double scale
        double last_bucket
        int32_t shift
        int32_t n_steps

    void copy_floats(const char* column, Py_ssize_t stride, Py_ssize_t n, double* x) noexcept nogil
    void copy_doubles(const char* column, Py_ssize_t stride, Py_ssize_t n, double* x) noexcept nogil
    void bins_of(
        const double* x, Py_ssize_t n, const BucketRule* rule, const double* cuts, const int32_t* place, int32_t* bins
    ) noexcept nogil
    void add_values(const int32_t* bins, Py_ssize_t n, const double* value, double* out) noexcept nogil
