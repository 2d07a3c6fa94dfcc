/* The loops that write the columns of folds, over the voters of one feature (_folds.pyx). */
#ifndef QUADBOOST_FOLDS_H
#define QUADBOOST_FOLDS_H

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

#define DEFINE_ADD(NAME, NUMBER)                                                                                    \
    FOR_EVERY_MACHINE static void NAME(NUMBER *restrict total, const NUMBER *restrict own, ptrdiff_t n)             \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++)                                                                           \
            total[i] += own[i];                                                                                     \
    }

/* Write sign times what is known plus what is new. */
#define DEFINE_WRITE(NAME, NUMBER, KEPT)                                                                            \
    FOR_EVERY_MACHINE static void NAME(                                                                             \
        KEPT *restrict out, int sign, const KEPT *restrict known, const NUMBER *restrict new_part, ptrdiff_t n)     \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n && sign > 0; i++)                                                               \
            out[i] = (KEPT)(new_part[i] + known[i]);                                                                \
        for (ptrdiff_t i = 0; i < n && sign < 0; i++)                                                               \
            out[i] = (KEPT)(new_part[i] - known[i]);                                                                \
    }

DEFINE_ADD(add_counts, int32_t)
DEFINE_ADD(add_sums, double)
DEFINE_WRITE(write_shorts, int32_t, int16_t)
DEFINE_WRITE(write_counts, int32_t, int32_t)
DEFINE_WRITE(write_sums, double, double)

#endif
