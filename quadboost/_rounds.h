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

#ifdef _MSC_VER
#define ALWAYS_INLINE static __forceinline
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* The objective as a function of one weight x is (eta + ridge) x^2 - 2 z x + 2 shrink |x|, within +-cap. */
typedef struct {
    double ridge, shrink, cap;
} penalty_t;

/* The voters of a block, and the weight that an update of each would replace. */
typedef struct {
    double *edge;
    const double *mean, *eta, *inverse, *anchor;
} voters_t;

/* By how much the objective falls when a voter is given its best weight. */
ALWAYS_INLINE double decrease_by_rule(double edge, double eta, double inverse, double anchor, penalty_t by)
{
    double c = eta + by.ridge, z = edge + eta * anchor;
    double lowered = z - by.shrink, raised = z + by.shrink;
    double w = ((lowered > 0 ? lowered : 0) + (raised < 0 ? raised : 0)) * inverse;
    w = w < by.cap ? w : by.cap;
    w = w > -by.cap ? w : -by.cap;
    double d = w - anchor;
    return d * (c * d + 2 * (z - c * w)) - 2 * by.shrink * (fabs(w) - fabs(anchor));
}

/* The same where nothing shrinks or caps the weight: there the slope is a straight line down to zero. */
ALWAYS_INLINE double decrease_if_free(double edge, double eta, double inverse, double anchor, penalty_t by)
{
    (void)eta;
    double slope = edge - by.ridge * anchor;
    return slope * slope * inverse;
}

#define LANES 16 /* voters; compilers find vectors in so many running maxima, and not in one */
#define AHEAD 512 /* voters by which a column, often not in the processor's cache, is fetched before it is needed */

#if defined(__GNUC__) || defined(__clang__)
#define FETCH(address) __builtin_prefetch(address)
#else
#define FETCH(address)
#endif

/* Move the edges of n voters after one weight moved, and return the largest decrease that one of them now offers. */
#define DEFINE_MOVE_AND_RATE(NAME, COLUMN, DECREASE)                                                                \
    FOR_EVERY_MACHINE static double NAME(                                                                           \
        voters_t of, const COLUMN *restrict column, double p, double q, penalty_t by, ptrdiff_t n)                  \
    {                                                                                                               \
        double *restrict edge = of.edge;                                                                            \
        const double *restrict mean = of.mean, *restrict eta = of.eta;                                              \
        const double *restrict inverse = of.inverse, *restrict anchor = of.anchor;                                  \
        double top[LANES], most = -1;                                                                            \
        ptrdiff_t i = 0;                                                                                            \
        for (int k = 0; k < LANES; k++)                                                                          \
            top[k] = -1;                                                                                            \
        for (; i + LANES <= n; i += LANES) {                                                                        \
            FETCH(column + i + AHEAD);                                                                              \
            for (int k = 0; k < LANES; k++) {                                                                       \
                edge[i + k] -= p * (double)column[i + k] - q * mean[i + k];                                         \
                double offer = DECREASE(edge[i + k], eta[i + k], inverse[i + k], anchor[i + k], by);                \
                top[k] = offer > top[k] ? offer : top[k];                                                           \
            }                                                                                                       \
        }                                                                                                           \
        for (; i < n; i++) {                                                                                        \
            edge[i] -= p * (double)column[i] - q * mean[i];                                                         \
            double offer = DECREASE(edge[i], eta[i], inverse[i], anchor[i], by);                                    \
            most = offer > most ? offer : most;                                                                     \
        }                                                                                                           \
        for (int k = 0; k < LANES; k++)                                                                          \
            most = top[k] > most ? top[k] : most;                                                                   \
        return most;                                                                                                \
    }

/* The first of n voters that offers the wanted decrease; one of them does. Without a way out of the loop: many are
 * looked at together. */
#define DEFINE_FIRST_THAT_OFFERS(NAME, DECREASE)                                                                    \
    FOR_EVERY_MACHINE static ptrdiff_t NAME(voters_t of, penalty_t by, double wanted, ptrdiff_t n)                  \
    {                                                                                                               \
        ptrdiff_t first = n;                                                                                        \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            double offer = DECREASE(of.edge[i], of.eta[i], of.inverse[i], of.anchor[i], by);                        \
            ptrdiff_t here = offer == wanted ? i : n;                                                               \
            first = here < first ? here : first;                                                                    \
        }                                                                                                           \
        return first;                                                                                               \
    }

DEFINE_MOVE_AND_RATE(rate_counts_by_rule, int32_t, decrease_by_rule)
DEFINE_MOVE_AND_RATE(rate_counts_if_free, int32_t, decrease_if_free)
DEFINE_MOVE_AND_RATE(rate_sums_by_rule, double, decrease_by_rule)
DEFINE_MOVE_AND_RATE(rate_sums_if_free, double, decrease_if_free)
DEFINE_FIRST_THAT_OFFERS(first_by_rule, decrease_by_rule)
DEFINE_FIRST_THAT_OFFERS(first_if_free, decrease_if_free)

static int is_free(penalty_t by)
{
    return by.shrink == 0 && by.cap == INFINITY;
}

static double move_and_rate_counts(
    voters_t of, const int32_t *column, double p, double q, penalty_t by, ptrdiff_t n)
{
    return is_free(by) ? rate_counts_if_free(of, column, p, q, by, n) : rate_counts_by_rule(of, column, p, q, by, n);
}

static double move_and_rate_sums(voters_t of, const double *column, double p, double q, penalty_t by, ptrdiff_t n)
{
    return is_free(by) ? rate_sums_if_free(of, column, p, q, by, n) : rate_sums_by_rule(of, column, p, q, by, n);
}

static ptrdiff_t first_that_offers(voters_t of, penalty_t by, double wanted, ptrdiff_t n)
{
    return is_free(by) ? first_if_free(of, by, wanted, n) : first_by_rule(of, by, wanted, n);
}

#define DEFINE_MOVE(NAME, COLUMN)                                                                                   \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        double *restrict edge, const COLUMN *restrict column, const double *restrict mean, double p, double q,      \
        ptrdiff_t n)                                                                                                \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++)                                                                           \
            edge[i] -= p * (double)column[i] - q * mean[i];                                                         \
    }

DEFINE_MOVE(move_counts, int32_t)
DEFINE_MOVE(move_sums, double)

#endif
