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

#define HALF 128 /* of the most voters of a block */

/* The largest of n numbers, at most two halves; there is room for all of them. By halves, because compilers find
 * vectors in that and not in one running maximum. */
FOR_EVERY_MACHINE static double largest_of(double *restrict decrease, ptrdiff_t n)
{
    double top[HALF];
    for (ptrdiff_t i = n; i < 2 * HALF; i++)
        decrease[i] = -1;
    for (ptrdiff_t i = 0; i < HALF; i++)
        top[i] = decrease[i] > decrease[i + HALF] ? decrease[i] : decrease[i + HALF];
    for (ptrdiff_t half = HALF / 2; half > 0; half /= 2)
        for (ptrdiff_t i = 0; i < half; i++)
            top[i] = top[i] > top[i + half] ? top[i] : top[i + half];
    return top[0];
}

/* The first of n numbers that is the wanted one, which is among them. Without a way out of the loop: many are looked at
 * together. */
FOR_EVERY_MACHINE static ptrdiff_t first_equal(const double *restrict decrease, double wanted, ptrdiff_t n)
{
    ptrdiff_t first = n;
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t here = decrease[i] == wanted ? i : n;
        first = here < first ? here : first;
    }
    return first;
}

/* Move the edges of a block of voters after one weight moved, state the decrease of the objective that each voter
 * now offers, and return the largest. `decrease` has room for two halves.
 *
 * The objective as a function of one weight x is curvature x^2 - 2 z x + 2 shrink |x|, within +-cap. Without shrink
 * and cap a block takes two thirds of the time, and the numbers are the same. */
#define SHRUNK_AND_CAPPED(W, Z, INVERSE)                                                                            \
    double lowered = Z - shrink, raised = Z + shrink;                                                               \
    double W = ((lowered > 0 ? lowered : 0) + (raised < 0 ? raised : 0)) * INVERSE;                                 \
    W = W < cap ? W : cap;                                                                                          \
    W = W > -cap ? W : -cap;
#define FREE(W, Z, INVERSE) double W = Z * INVERSE;
#define PRICE(W, A) - 2 * shrink * (fabs(W) - fabs(A))
#define NO_PRICE(W, A)

#define DEFINE_MOVE_AND_RATE(NAME, COLUMN, RULE, COST)                                                              \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        double *restrict edge, const COLUMN *restrict column, const double *restrict mean, double p, double q,      \
        const double *restrict eta, const double *restrict curvature, const double *restrict inverse,               \
        const double *restrict anchor, double shrink, double cap, double *restrict decrease, ptrdiff_t n)           \
    {                                                                                                               \
        (void)shrink, (void)cap;                                                                                    \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            double e = edge[i] - (p * (double)column[i] - q * mean[i]);                                             \
            double a = anchor[i], c = curvature[i];                                                                 \
            double z = e + eta[i] * a;                                                                              \
            RULE(w, z, inverse[i])                                                                                  \
            double d = w - a;                                                                                       \
            edge[i] = e;                                                                                            \
            decrease[i] = d * (c * d + 2 * (z - c * w)) COST(w, a);                                                 \
        }                                                                                                           \
    }

#define DEFINE_BEST_OF_BLOCK(NAME, COLUMN)                                                                          \
    DEFINE_MOVE_AND_RATE(NAME##_penalised, COLUMN, SHRUNK_AND_CAPPED, PRICE)                                        \
    DEFINE_MOVE_AND_RATE(NAME##_free, COLUMN, FREE, NO_PRICE)                                                       \
    static double NAME(                                                                                             \
        double *edge, const COLUMN *column, const double *mean, double p, double q, const double *eta,              \
        const double *curvature, const double *inverse, const double *anchor, double shrink, double cap,            \
        double *decrease, ptrdiff_t n)                                                                              \
    {                                                                                                               \
        if (shrink == 0 && cap == INFINITY)                                                                         \
            NAME##_free(edge, column, mean, p, q, eta, curvature, inverse, anchor, shrink, cap, decrease, n);       \
        else                                                                                                        \
            NAME##_penalised(edge, column, mean, p, q, eta, curvature, inverse, anchor, shrink, cap, decrease, n);  \
        return largest_of(decrease, n);                                                                             \
    }

#define DEFINE_MOVE(NAME, COLUMN)                                                                                   \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        double *restrict edge, const COLUMN *restrict column, const double *restrict mean, double p, double q,      \
        ptrdiff_t n)                                                                                                \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++)                                                                           \
            edge[i] -= p * (double)column[i] - q * mean[i];                                                         \
    }

DEFINE_BEST_OF_BLOCK(move_and_rate_counts, int32_t)
DEFINE_BEST_OF_BLOCK(move_and_rate_sums, double)
DEFINE_MOVE(move_counts, int32_t)
DEFINE_MOVE(move_sums, double)

#endif
