/* The loops over voters in which the rounds spend their time. In C, for every instruction set and every
 * kind of column; nothing is summed. */
#ifndef QUADBOOST_ROUNDS_H
#define QUADBOOST_ROUNDS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

/* The objective as a function of one weight x is curve x^2 - 2 z x + 2 shrink |x|, for x from low to high; the curve
 * is eta + ridge. */
typedef struct {
    double shrink, low, high;
} penalty_t;

/* All voters. The anchor is the weight that an update of a voter would replace, and the slope is its edge less
 * ridge times that: minus half the derivative of the smooth part of the objective. Where voters have bounds of their
 * own, least and most are what may be added to a weight, and shrink is an array unless it is zero for all; else they
 * are NULL. */
typedef struct {
    double *slope;
    const double *mean, *curve, *inverse, *anchor, *shrink, *least, *most;
} voters_t;

/* By how much the objective falls when a voter is given its best weight. */
ALWAYS_INLINE double decrease_by_rule(double slope, double c, double inverse, double anchor, penalty_t by)
{
    double z = slope + c * anchor;
    double kept = z < by.shrink ? z : by.shrink;
    double w = (z - (kept > -by.shrink ? kept : -by.shrink)) * inverse;
    w = w < by.high ? w : by.high;
    w = w > by.low ? w : by.low;
    double d = w - anchor;
    return d * (2 * slope - c * d) - 2 * by.shrink * (fabs(w) - fabs(anchor));
}

/* The same where nothing shrinks or caps the weight: the slope falls to zero in a straight line. */
ALWAYS_INLINE double decrease_if_free(double slope, double c, double inverse, double anchor, penalty_t by)
{
    (void)c, (void)anchor, (void)by;
    return slope * slope * inverse;
}

/* The same where nothing shrinks the weight, and bounds are on what is added to it. */
ALWAYS_INLINE double decrease_within(double slope, double c, double inverse, double anchor, penalty_t by)
{
    (void)anchor;
    double d = slope * inverse;
    d = d < by.high ? d : by.high;
    d = d > by.low ? d : by.low;
    return d * (2 * slope - c * d);
}

/* Which penalty a voter has: that of all, its own, or its own bounds alone. */
#define COMMON(I) by
#define OWN(I) ((penalty_t){of.shrink[I], anchor[I] + of.least[I], anchor[I] + of.most[I]})
#define BOUNDS(I) ((penalty_t){0, of.least[I], of.most[I]})

/* A column of the Gram matrix: sums over rows, whole numbers (int32_t) or doubles. */
typedef struct {
    const void *sums;
    int has_counts;
} column_t;

/* The largest decrease that a voter offers, and the first one that does. */
typedef struct {
    double decrease;
    ptrdiff_t voter;
} offer_t;

#define LANES 16 /* running maxima: compilers find vectors in so many, and not in one; more need too many registers */
#define AHEAD 512 /* voters by which a column, often not in the processor's cache, is fetched before it is needed */
#define SOON(NUMBER) ((const char *)((uintptr_t)(NUMBER) + AHEAD * sizeof(*(NUMBER)))) /* may be past the end */

#define FOLD(X, HALF, BEFORE)                                                                                       \
    for (int k = 0; k < HALF; k++)                                                                                  \
        X[k] = X[k] BEFORE X[k + HALF] ? X[k] : X[k + HALF];
#define FIRST_OF(X, BEFORE) FOLD(X, 8, BEFORE) FOLD(X, 4, BEFORE) FOLD(X, 2, BEFORE) FOLD(X, 1, BEFORE)

/* Move the slopes of voters first..last - 1 after one weight moved, and return the best offer that one of them now makes.
 * Which one it is cannot be foreseen: nothing branches on it, and choices are made by masks. */
#define DEFINE_RATE(NAME, NUMBER, DECREASE, PENALTY)                                                                \
    FOR_WIDE_MACHINES_TOO static offer_t NAME(                                                                          \
        voters_t of, const NUMBER *restrict sums, double p, double q, penalty_t by, ptrdiff_t first, ptrdiff_t last)\
    {                                                                                                               \
        double *restrict slope = of.slope;                                                                          \
        const double *restrict mean = of.mean, *restrict curve = of.curve;                                          \
        const double *restrict inverse = of.inverse, *restrict anchor = of.anchor;                                  \
        double top[LANES], most[LANES];                                                                             \
        int64_t at[LANES], i = first;                                                                               \
        for (int k = 0; k < LANES; k++)                                                                             \
            top[k] = -1, at[k] = first;                                                                             \
        for (; i + LANES <= last; i += LANES) {                                                                     \
            PREFETCH(SOON(sums + i));                                                                               \
            for (int k = 0; k < LANES; k++) {                                                                       \
                slope[i + k] -= p * (double)sums[i + k] - q * mean[i + k];                                          \
                double offer = DECREASE(slope[i + k], curve[i + k], inverse[i + k], anchor[i + k], PENALTY(i + k)); \
                int64_t is_more = -(int64_t)(offer > top[k]);                                                       \
                at[k] = (i & is_more) | (at[k] & ~is_more);                                                         \
                top[k] = offer > top[k] ? offer : top[k];                                                           \
            }                                                                                                       \
        }                                                                                                           \
        for (int k = 0; k < LANES; k++)                                                                             \
            most[k] = top[k];                                                                                       \
        FIRST_OF(most, >)                                                                                           \
        for (int k = 0; k < LANES; k++)                                                                             \
            at[k] = (at[k] + k) | (-(int64_t)(top[k] < most[0]) & INT64_MAX);                                       \
        FIRST_OF(at, <)                                                                                             \
        offer_t best = {most[0], (ptrdiff_t)at[0]};                                                                 \
        for (; i < last; i++) {                                                                                     \
            slope[i] -= p * (double)sums[i] - q * mean[i];                                                          \
            double offer = DECREASE(slope[i], curve[i], inverse[i], anchor[i], PENALTY(i));                         \
            best.voter = offer > best.decrease ? (ptrdiff_t)i : best.voter;                                         \
            best.decrease = offer > best.decrease ? offer : best.decrease;                                          \
        }                                                                                                           \
        return best;                                                                                                \
    }

/* Move the slopes, and no more. */
#define DEFINE_MOVE(NAME, NUMBER)                                                                                   \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        double *restrict slope, const double *restrict mean, const NUMBER *restrict sums, double p, double q,       \
        ptrdiff_t n)                                                                                                \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++)                                                                           \
            slope[i] -= p * (double)sums[i] - q * mean[i];                                                          \
    }

/* The same after TOGETHER weights moved, to the same bits: slopes and means are read and written once for all. */
#define TOGETHER 8
#define STEP(K) s -= p[K] * (double)c##K[i] - q[K] * m;
#define DEFINE_MOVE_TOGETHER(NAME, NUMBER)                                                                          \
    FOR_WIDE_MACHINES_TOO static void NAME(                                                                             \
        double *restrict slope, const double *restrict mean, const column_t *columns, const double *p,              \
        const double *q, ptrdiff_t n)                                                                               \
    {                                                                                                               \
        const NUMBER *restrict c0 = columns[0].sums, *restrict c1 = columns[1].sums, *restrict c2 = columns[2].sums;\
        const NUMBER *restrict c3 = columns[3].sums, *restrict c4 = columns[4].sums, *restrict c5 = columns[5].sums;\
        const NUMBER *restrict c6 = columns[6].sums, *restrict c7 = columns[7].sums;                                \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            double s = slope[i], m = mean[i];                                                                       \
            STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)                                         \
            slope[i] = s;                                                                                           \
        }                                                                                                           \
    }

DEFINE_RATE(rate_by_rule_counts, int32_t, decrease_by_rule, COMMON)
DEFINE_RATE(rate_by_rule_sums, double, decrease_by_rule, COMMON)
DEFINE_RATE(rate_by_own_rule_counts, int32_t, decrease_by_rule, OWN)
DEFINE_RATE(rate_by_own_rule_sums, double, decrease_by_rule, OWN)
DEFINE_RATE(rate_within_counts, int32_t, decrease_within, BOUNDS)
DEFINE_RATE(rate_within_sums, double, decrease_within, BOUNDS)
DEFINE_RATE(rate_if_free_counts, int32_t, decrease_if_free, COMMON)
DEFINE_RATE(rate_if_free_sums, double, decrease_if_free, COMMON)
DEFINE_MOVE(move_counts, int32_t)
DEFINE_MOVE(move_sums, double)
DEFINE_MOVE_TOGETHER(move_counts_together, int32_t)
DEFINE_MOVE_TOGETHER(move_sums_together, double)

static int is_free(penalty_t by)
{
    return by.shrink == 0 && by.low == -INFINITY && by.high == INFINITY;
}

static offer_t move_and_rate(
    voters_t of, column_t column, double p, double q, penalty_t by, ptrdiff_t first, ptrdiff_t last)
{
    const int32_t *counts = (const int32_t *)column.sums;
    const double *sums = (const double *)column.sums;
    if (of.shrink != NULL)
        return column.has_counts ? rate_by_own_rule_counts(of, counts, p, q, by, first, last)
                             : rate_by_own_rule_sums(of, sums, p, q, by, first, last);
    if (of.least != NULL)
        return column.has_counts ? rate_within_counts(of, counts, p, q, by, first, last)
                             : rate_within_sums(of, sums, p, q, by, first, last);
    if (is_free(by))
        return column.has_counts ? rate_if_free_counts(of, counts, p, q, by, first, last)
                             : rate_if_free_sums(of, sums, p, q, by, first, last);
    return column.has_counts ? rate_by_rule_counts(of, counts, p, q, by, first, last)
                         : rate_by_rule_sums(of, sums, p, q, by, first, last);
}

static void move(double *slope, const double *mean, column_t column, double p, double q, ptrdiff_t n)
{
    if (column.has_counts)
        move_counts(slope, mean, (const int32_t *)column.sums, p, q, n);
    else
        move_sums(slope, mean, (const double *)column.sums, p, q, n);
}

static void move_together(
    double *slope, const double *mean, const column_t *columns, const double *p, const double *q, ptrdiff_t n)
{
    if (columns[0].has_counts)
        move_counts_together(slope, mean, columns, p, q, n);
    else
        move_sums_together(slope, mean, columns, p, q, n);
}

#endif
