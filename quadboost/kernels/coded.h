/* Between rows coded by the bins of columns and numbers per bin, both ways: what every pass over the rows does. */
#ifndef QUADBOOST_CODED_H
#define QUADBOOST_CODED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* Scores of the rows first..last: to each the values of its bins are added, column after column. `value` has k numbers
 * for every bin. Four rows at a time: each sum waits for its last addition. */
#define DEFINE_CODED(SUFFIX, CODE)                                                                                  \
    FOR_WIDE_MACHINES_TOO static void add_values_##SUFFIX(                                                              \
        const CODE *restrict codes, ptrdiff_t d, const int64_t *restrict column, const int64_t *restrict start,     \
        ptrdiff_t n, const double *restrict value, ptrdiff_t k, double *restrict out, ptrdiff_t first, ptrdiff_t last) \
    {                                                                                                               \
        ptrdiff_t r = first;                                                                                        \
        for (; k == 1 && r + 4 <= last; r += 4) {                                                                   \
            const CODE *r0 = codes + r * d, *r1 = r0 + d, *r2 = r1 + d, *r3 = r2 + d;                               \
            double s0 = out[r], s1 = out[r + 1], s2 = out[r + 2], s3 = out[r + 3];                                  \
            for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
                const ptrdiff_t f = column[i];                                                                      \
                const double *of_bins = value + start[i];                                                           \
                s0 += of_bins[r0[f]];                                                                               \
                s1 += of_bins[r1[f]];                                                                               \
                s2 += of_bins[r2[f]];                                                                               \
                s3 += of_bins[r3[f]];                                                                               \
            }                                                                                                       \
            out[r] = s0, out[r + 1] = s1, out[r + 2] = s2, out[r + 3] = s3;                                         \
        }                                                                                                           \
        for (; r < last; r++) {                                                                                     \
            ptrdiff_t o = 0;                                                                                        \
            for (; o + 8 <= k; o += 8) {                                                                            \
                double sum[8];                                                                                      \
                for (int l = 0; l < 8; l++)                                                                         \
                    sum[l] = out[r * k + o + l];                                                                    \
                for (ptrdiff_t i = 0; i < n; i++) {                                                                 \
                    const double *restrict in_bin = value + (start[i] + codes[r * d + column[i]]) * k + o;          \
                    for (int l = 0; l < 8; l++)                                                                     \
                        sum[l] += in_bin[l];                                                                        \
                }                                                                                                   \
                for (int l = 0; l < 8; l++)                                                                         \
                    out[r * k + o + l] = sum[l];                                                                    \
            }                                                                                                       \
            for (ptrdiff_t i = 0; o < k && i < n; i++) {                                                            \
                const double *restrict in_bin = value + (start[i] + codes[r * d + column[i]]) * k;                  \
                for (ptrdiff_t l = o; l < k; l++)                                                                   \
                    out[r * k + l] += in_bin[l];                                                                    \
            }                                                                                                       \
        }                                                                                                           \
    }                                                                                                               \
    /* Sums per bin of the columns first..last, k numbers for every row and bin. */                                 \
    FOR_WIDE_MACHINES_TOO static void add_to_bins_##SUFFIX(                                                             \
        const CODE *restrict codes, ptrdiff_t m, ptrdiff_t d, const int64_t *restrict value, ptrdiff_t k,           \
        const int64_t *restrict start, int64_t *restrict out, ptrdiff_t first, ptrdiff_t last)                      \
    {                                                                                                               \
        for (ptrdiff_t r = 0; r < m; r++)                                                                           \
            for (ptrdiff_t f = first; f < last; f++) {                                                              \
                if (k == 1) {                                                                                       \
                    out[start[f] + codes[r * d + f]] += value[r];                                                   \
                } else {                                                                                            \
                    int64_t *restrict sum = out + (start[f] + codes[r * d + f]) * k;                                \
                    const int64_t *restrict of_row = value + r * k;                                                 \
                    for (ptrdiff_t o = 0; o < k; o++)                                                               \
                        sum[o] += of_row[o];                                                                        \
                }                                                                                                   \
            }                                                                                                       \
    }

/* Nearest whole number of |x| < 2^51, without a call: the sum has it in its last bits. */
#define SHIFTER 6755399441055744.0 /* 1.5 * 2^52 */
ALWAYS_INLINE int64_t nearest(double x)
{
    const double shifted = x + SHIFTER, shifter = SHIFTER;
    int64_t bits, origin;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&origin, &shifter, sizeof origin);
    return bits - origin;
}

/* n scores as whole numbers of units; `factor` and `count`, if any, have a number for each of the rows, k scores each. */
FOR_EVERY_MACHINE static void in_units(
    const double *restrict score, ptrdiff_t n, ptrdiff_t k, double per_unit, const double *restrict factor,
    const int64_t *restrict count, int64_t *restrict whole)
{
    for (ptrdiff_t i = 0; i < n * k; i++)
        whole[i] = nearest(factor ? score[i] * per_unit * factor[i / k] : score[i] * per_unit);
    for (ptrdiff_t i = 0; count && i < n * k; i++)
        whole[i] *= count[i / k];
}

DEFINE_CODED(bytes, uint8_t)
DEFINE_CODED(shorts, uint16_t)
DEFINE_CODED(words, uint32_t)

/* The same for codes of `size` bytes each. */
#define BY_SIZE(FUNCTION, ...)                                                                                      \
    do {                                                                                                            \
        if (size == 1)                                                                                              \
            FUNCTION##_bytes((const uint8_t *)codes, __VA_ARGS__);                                                  \
        else if (size == 2)                                                                                         \
            FUNCTION##_shorts((const uint16_t *)codes, __VA_ARGS__);                                                \
        else                                                                                                        \
            FUNCTION##_words((const uint32_t *)codes, __VA_ARGS__);                                                 \
    } while (0)

static inline void add_values(
    const void *codes, int size, ptrdiff_t d, const int64_t *column, const int64_t *start, ptrdiff_t n,
    const double *value, ptrdiff_t k, double *out, ptrdiff_t first, ptrdiff_t last)
{
    BY_SIZE(add_values, d, column, start, n, value, k, out, first, last);
}

static inline void add_to_bins(
    const void *codes, int size, ptrdiff_t m, ptrdiff_t d, const int64_t *value, ptrdiff_t k, const int64_t *start,
    int64_t *out, ptrdiff_t first, ptrdiff_t last)
{
    BY_SIZE(add_to_bins, m, d, value, k, start, out, first, last);
}

#endif
