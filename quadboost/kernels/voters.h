/* What the voters of a feature say in its bins.
 *
 * Threshold voter i: -1 on bins 0..i, +1 on bins i+1..k; level voter i: +1 on bin i+1, else -1; both 0 on the bin of
 * missing values. Missing voter: +1 there, else -1. */
#ifndef QUADBOOST_VOTERS_H
#define QUADBOOST_VOTERS_H

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

#define AT_A_TIME 256 /* bins summed up before what they say is added: one needs the bin before it, the other does not */

/* Add factor times the sum of value * h over rows, for every voter of a feature, from sums of value per bin. */
#define DEFINE_ADD_VOTERS(NAME, NUMBER)                                                                             \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        const NUMBER *restrict bins, ptrdiff_t n_cuts, int is_level, int has_missing, NUMBER factor,                \
        NUMBER *restrict out)                                                                                       \
    {                                                                                                               \
        NUMBER present = 0, below = 0, sums[AT_A_TIME];                                                             \
        for (ptrdiff_t i = 0; i <= n_cuts; i++)                                                                     \
            present += bins[i];                                                                                     \
        for (ptrdiff_t first = 0; first < n_cuts && !is_level; first += AT_A_TIME) {                                \
            ptrdiff_t n = n_cuts - first < AT_A_TIME ? n_cuts - first : AT_A_TIME;                                  \
            RUNNING_SUM(below)                                                                                      \
            for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
                below += bins[first + i];                                                                           \
                SUMMED_UP(below)                                                                                    \
                sums[i] = below;                                                                                    \
            }                                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++)                                                                       \
                out[first + i] += factor * (present - 2 * sums[i]);                                                 \
        }                                                                                                           \
        for (ptrdiff_t i = 0; i < n_cuts && is_level; i++)                                                          \
            out[i] += factor * (2 * bins[i + 1] - present);                                                         \
        if (has_missing)                                                                                            \
            out[n_cuts] += factor * (bins[n_cuts + 1] - present);                                                   \
    }

DEFINE_ADD_VOTERS(add_voters_of_counts, int32_t)
DEFINE_ADD_VOTERS(add_voters_of_whole_sums, int64_t)
DEFINE_ADD_VOTERS(add_voters_of_sums, double)

#endif
