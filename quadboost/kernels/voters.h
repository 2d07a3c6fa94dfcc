/* From sums per bin to sums per voter.
 *
 * A voter says +1 in an interval of the bins of its column and -1 in the other bins up to `whole`; beyond, it abstains.
 * With running sums over the bins, the sum of value * h over rows is 2 (sum up to high - sum up to low) - sum up to whole,
 * where `low` is the last bin before the interval and `high` the last bin in it. No interval has the first bin. */
#ifndef QUADBOOST_VOTERS_H
#define QUADBOOST_VOTERS_H

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

/* Where the voters of a column are. The first n_nested have intervals that begin one bin after the other and reach to
 * the last value, as thresholds have: no look-up is needed for them. */
typedef struct {
    const int32_t *low, *high, *whole;
    ptrdiff_t n_nested, n_voters;
} intervals_t;

#define DEFINE_VOTERS(SUFFIX, NUMBER)                                                                               \
    /* Make sums per bin running sums. */                                                                           \
    FOR_EVERY_MACHINE static void run_along_##SUFFIX(NUMBER *restrict bins, ptrdiff_t n)                            \
    {                                                                                                               \
        NUMBER sum = 0;                                                                                             \
        RUNNING_SUM(sum)                                                                                            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            sum += bins[i];                                                                                         \
            SUMMED_UP(sum)                                                                                          \
            bins[i] = sum;                                                                                          \
        }                                                                                                           \
    }                                                                                                               \
    /* Add factor times the sum of value * h for every voter of a column, from running sums over all bins. */       \
    FOR_EVERY_MACHINE static void add_voters_##SUFFIX(                                                              \
        const NUMBER *restrict running, intervals_t of, NUMBER factor, NUMBER *restrict out)                        \
    {                                                                                                               \
        if (of.n_nested > 0) {                                                                                      \
            const NUMBER present = running[of.whole[0]], *restrict below = running + of.low[0];                     \
            for (ptrdiff_t i = 0; i < of.n_nested; i++)                                                             \
                out[i] += factor * (present - 2 * below[i]);                                                        \
        }                                                                                                           \
        for (ptrdiff_t i = of.n_nested; i < of.n_voters; i++)                                                       \
            out[i] += factor * (2 * (running[of.high[i]] - running[of.low[i]]) - running[of.whole[i]]);             \
    }

DEFINE_VOTERS(counts, int32_t)
DEFINE_VOTERS(whole_sums, int64_t)
DEFINE_VOTERS(sums, double)

#endif
