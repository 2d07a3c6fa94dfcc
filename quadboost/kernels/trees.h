/* The leaf that a row falls into, in every tree at once.
 *
 * A tree has a bit for each of its leaves. For every bin of every feature there is a row of words, one or more for each
 * tree, with the bits of the leaves that a row in that bin can still reach. The leaf of a row is the bit that is left
 * when the words of all its bins are joined by AND: no branch, and as many trees at once as a register has words. */
#ifndef QUADBOOST_TREES_H
#define QUADBOOST_TREES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

#define BITS_OF_WORD 32

/* Which leaves are left of a row whose bins begin at `bin`, `stride` apart, one for each of n features. */
FOR_WIDE_MACHINES_TOO static void reach(
    const uint32_t *restrict table, const int64_t *restrict start, const int32_t *restrict bin, ptrdiff_t stride,
    ptrdiff_t n, ptrdiff_t n_words, uint32_t *restrict left)
{
    memset(left, 0xff, (size_t)n_words * sizeof(*left));
    for (ptrdiff_t f = 0; f < n; f++) {
        const uint32_t *restrict reached = table + (start[f] + bin[f * stride]) * n_words;
        for (ptrdiff_t w = 0; w < n_words; w++)
            left[w] &= reached[w];
    }
}

static inline int lowest_bit(uint32_t word)
{
#if defined(__GNUC__)
    return __builtin_ctz(word);
#else
    int bit = 0;
    while (!(word & 1u)) {
        word >>= 1;
        bit++;
    }
    return bit;
#endif
}

static inline int highest_bit(uint64_t word)
{
#if defined(__GNUC__)
    return 63 - __builtin_clzll(word);
#else
    int bit = 0;
    while (word >>= 1)
        bit++;
    return bit;
#endif
}

/* The number of the leaf that is left in a tree of several words. */
static inline int leaf_left(const uint32_t *words, ptrdiff_t n)
{
    ptrdiff_t w = 0;
    while (w + 1 < n && words[w] == 0)
        w++;
    return (int)w * BITS_OF_WORD + lowest_bit(words[w]);
}

#endif
