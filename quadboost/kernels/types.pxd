"""What the kernels of training share: the types they are compiled for, a hint to the processor, a sum of products."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

cdef extern from "compiler.h":
    void PREFETCH(const void*) noexcept nogil

ctypedef fused real_t:
    float
    double

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef inline uint32_t code_at(const void* codes, int size, Py_ssize_t i) noexcept nogil:
    """The i-th of codes of one, two or four bytes."""
    if size == 1:
        return (<const uint8_t*> codes)[i]
    return (<const uint16_t*> codes)[i] if size == 2 else (<const uint32_t*> codes)[i]


# Counts of rows fit in 32 bits, which halves the memory traffic of a round. Weights are rounded so that their
# sums are exact in doubles; targets times weights are fixed-point numbers of 64 bits.
ctypedef fused count_t:
    int32_t
    double

ctypedef fused exact_t:
    int32_t
    int64_t
    double


cdef inline double sum_of_products(const double* x, const double* y, Py_ssize_t n) noexcept nogil:
    # Four partial sums in a fixed order: fast, and the same bits on every machine, for any number of threads.
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
        i += 4
    while i < n:
        s0 += x[i] * y[i]
        i += 1
    return (s0 + s1) + (s2 + s3)
