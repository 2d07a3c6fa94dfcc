/* The two loops in which the rounds spend their time. In C, because here the compiler is asked for one version of
 * each for every instruction set, of which the program takes the best of the machine it runs on. All give the same
 * bits: the build forbids to fuse a multiplication with an addition, and nothing is summed. */
#ifndef QUADBOOST_ROUNDS_H
#define QUADBOOST_ROUNDS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define FOR_EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_MACHINE
#endif

#ifdef _MSC_VER
#define restrict __restrict
#endif

#define LANES 8

/* Move the edges of a block of voters after one weight moved, state the decrease of the objective that each voter
 * now offers, and return the largest. `decrease` has room for a multiple of LANES.
 *
 * The objective as a function of one weight x is curvature x^2 - 2 z x + 2 shrink |x|, within +-cap. */
#define DEFINE_MOVE_AND_RATE(NAME, COLUMN)                                                                          \
    FOR_EVERY_MACHINE static double NAME(                                                                           \
        double *restrict edge, const COLUMN *restrict column, const double *restrict mean, double p, double q,      \
        const double *restrict eta, const double *restrict curvature, const double *restrict inverse,               \
        const double *restrict anchor, double shrink, double cap, double *restrict decrease, ptrdiff_t n)           \
    {                                                                                                               \
        double top[LANES];                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            double e = edge[i] - (p * (double)column[i] - q * mean[i]);                                             \
            double a = anchor[i], c = curvature[i];                                                                 \
            double z = e + eta[i] * a;                                                                              \
            double lowered = z - shrink, raised = z + shrink;                                                       \
            double w = ((lowered > 0 ? lowered : 0) + (raised < 0 ? raised : 0)) * inverse[i];                      \
            w = w < cap ? w : cap;                                                                                  \
            w = w > -cap ? w : -cap;                                                                                \
            double d = w - a;                                                                                       \
            edge[i] = e;                                                                                            \
            decrease[i] = d * (c * d + 2 * (z - c * w)) - 2 * shrink * (fabs(w) - fabs(a));                         \
        }                                                                                                           \
        for (ptrdiff_t i = n; i % LANES != 0; i++)                                                                  \
            decrease[i] = -1;                                                                                       \
        for (ptrdiff_t k = 0; k < LANES; k++)                                                                       \
            top[k] = -1;                                                                                            \
        for (ptrdiff_t i = 0; i < n; i += LANES)                                                                    \
            for (ptrdiff_t k = 0; k < LANES; k++)                                                                   \
                top[k] = decrease[i + k] > top[k] ? decrease[i + k] : top[k];                                       \
        for (ptrdiff_t k = 1; k < LANES; k++)                                                                       \
            top[0] = top[k] > top[0] ? top[k] : top[0];                                                             \
        return top[0];                                                                                              \
    }

#define DEFINE_MOVE(NAME, COLUMN)                                                                                   \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        double *restrict edge, const COLUMN *restrict column, const double *restrict mean, double p, double q,      \
        ptrdiff_t n)                                                                                                \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++)                                                                           \
            edge[i] -= p * (double)column[i] - q * mean[i];                                                         \
    }

DEFINE_MOVE_AND_RATE(move_and_rate_counts, int32_t)
DEFINE_MOVE_AND_RATE(move_and_rate_sums, double)
DEFINE_MOVE(move_counts, int32_t)
DEFINE_MOVE(move_sums, double)

#endif
