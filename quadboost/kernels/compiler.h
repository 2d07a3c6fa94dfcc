/* Keywords that differ between compilers. */
#ifndef QUADBOOST_COMPILER_H
#define QUADBOOST_COMPILER_H

#ifdef _MSC_VER
#define restrict __restrict
#define ALWAYS_INLINE static __forceinline
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

/* An address that one thread writes, when what it points to is complete, and others read. */
#include <stdint.h>
#if defined(__GNUC__)
#define LOAD(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#else
#define LOAD(place) (*(const volatile uintptr_t *)(place))
#define STORE(place, value) (*(volatile uintptr_t *)(place) = (value))
#endif

/* One version of a function for every instruction set, of which the program takes the best of the machine it runs on.
 * All give the same bits: the build forbids to fuse a multiplication with an addition. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define FOR_EVERY_MACHINE __attribute__((target_clones("avx2", "default")))
#define FOR_WIDE_MACHINES_TOO __attribute__((target_clones("avx512f", "avx2", "default"))) /* where that is quicker */
#else
#define FOR_EVERY_MACHINE
#define FOR_WIDE_MACHINES_TOO
#endif

/* Before a loop, and in it between what adds to a running sum and what reads it: the sum may be made in any order. */
#if defined(_OPENMP) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 10
#define RUNNING_SUM(SUM) _Pragma(QUOTED(omp simd reduction(inscan, + : SUM)))
#define SUMMED_UP(SUM) _Pragma(QUOTED(omp scan inclusive(SUM)))
#define QUOTED(TEXT) #TEXT
#else
#define RUNNING_SUM(SUM)
#define SUMMED_UP(SUM)
#endif

#endif
