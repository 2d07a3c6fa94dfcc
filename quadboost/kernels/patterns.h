/* Which conditions of rules hold, for some rows at a time: a byte for each condition and row, then a pattern of bits. */
#ifndef QUADBOOST_PATTERNS_H
#define QUADBOOST_PATTERNS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

/* A condition holds where each of its n intervals has the value, above low and at most high, or, if it is `outside`, has
 * it not. Any value is above minus infinity. */
FOR_EVERY_MACHINE static void ask(
    const double *restrict x, ptrdiff_t n_rows, const double *restrict low, const double *restrict high,
    const uint8_t *restrict outside, ptrdiff_t n, uint8_t missing, uint8_t *restrict holds)
{
    for (ptrdiff_t r = 0; r < n_rows; r++)
        holds[r] = 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double least = low[i], most = high[i];
        const uint8_t is_open = least == -INFINITY, flip = outside[i];
        for (ptrdiff_t r = 0; r < n_rows; r++)
            holds[r] &= (uint8_t)((((uint8_t)(x[r] > least) | is_open) & (uint8_t)(x[r] <= most)) ^ flip);
    }
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        const uint8_t is_missing = x[r] != x[r];
        holds[r] = (uint8_t)((holds[r] & (is_missing ^ 1)) | (is_missing & missing));
    }
}

/* Bit i of a row's pattern: whether condition[i] holds; those of all conditions are `stride` apart. */
FOR_EVERY_MACHINE static void join(
    const uint8_t *restrict holds, ptrdiff_t stride, const int32_t *restrict condition, ptrdiff_t n, ptrdiff_t n_rows,
    uint16_t *restrict pattern)
{
    ptrdiff_t i = n & 1;
    if (i == 1)
        for (ptrdiff_t r = 0; r < n_rows; r++)
            pattern[r] = holds[condition[0] * stride + r];
    else
        for (ptrdiff_t r = 0; r < n_rows; r++)
            pattern[r] = 0;
    for (; i < n; i += 2) { /* two at a time: less is read and written */
        const uint8_t *restrict one = holds + condition[i] * stride, *restrict next = holds + condition[i + 1] * stride;
        for (ptrdiff_t r = 0; r < n_rows; r++)
            pattern[r] |= (uint16_t)((one[r] | next[r] << 1) << i);
    }
}

/* Add what a table says of the patterns of some rows. */
static inline void look_up(
    const double *restrict table, const uint16_t *restrict pattern, ptrdiff_t n_rows, double *restrict out)
{
    for (ptrdiff_t r = 0; r < n_rows; r++)
        out[r] += table[pattern[r]];
}

#endif
