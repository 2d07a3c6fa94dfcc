"""What the kernels of training share: the types that they are compiled for, and a hint to the processor."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define PREFETCH(address) __builtin_prefetch(address)
    #else
    #define PREFETCH(address)
    #endif
    """
    void PREFETCH(const void*) noexcept nogil

ctypedef fused real_t:
    float
    double

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

# Counts of rows fit in 32 bits, which halves the memory traffic of a round. Weights are rounded so that their
# sums are exact in doubles; targets times weights are fixed-point numbers of 64 bits.
ctypedef fused count_t:
    int32_t
    double

ctypedef fused sum_t:
    int64_t
    double

ctypedef fused exact_t:
    int32_t
    int64_t
    double
