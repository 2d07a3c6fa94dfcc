/* The bins of values (see bins.py), and what is looked up by bin, some rows at a time: in steps without a branch,
 * which no distribution of the values slows down. In C, because a machine with AVX-512 takes eight values at once;
 * the compiler, left alone, would not. Both ways compare the same numbers, and find the same bins. */
#ifndef QUADBOOST_BINS_H
#define QUADBOOST_BINS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define QUADBOOST_AVX512
#include <immintrin.h>
#define FOR_AVX512 __attribute__((target("avx512f,avx512vl")))
#endif

/* Rows handled together: few enough that what was read of them, a line of memory for each, is still at hand for
 * the next column; enough to use the tables of a column more than once. */
#define ROWS_OF_BLOCK 256

/* How the bucket of a value of one feature is found: a RULE of bins.py. */
typedef struct {
    int64_t first_cut, first_place;
    double low, scale, last_bucket;
    int32_t shift, n_steps;
} BucketRule;

/* An integer that grows with x: of a double's bits, the sign's complement apart. */
static inline int64_t key_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* Copy n values that are `stride` bytes apart, and ask for those of the next n rows. */
#define DEFINE_COPY_COLUMN(NAME, REAL)                                                                              \
    static inline void NAME(const char *column, ptrdiff_t stride, ptrdiff_t n, double *x)                                  \
    {                                                                                                               \
        if (stride == sizeof(REAL)) {                                                                               \
            for (ptrdiff_t r = 0; r < n; r++)                                                                       \
                x[r] = ((const REAL *)column)[r];                                                                   \
        } else {                                                                                                    \
            for (ptrdiff_t r = 0; r < n; r++) {                                                                     \
                PREFETCH(column + (n + r) * stride);                                                                \
                x[r] = *(const REAL *)(column + r * stride);                                                        \
            }                                                                                                       \
        }                                                                                                           \
    }
DEFINE_COPY_COLUMN(copy_floats, float)
DEFINE_COPY_COLUMN(copy_doubles, double)

/* The bucket of each value; one more than the last for NaN. */
static inline void plain_buckets_of(const double *x, ptrdiff_t n, const BucketRule *rule, int32_t *buckets)
{
    const double low = rule->low, scale = rule->scale, first = 0, last = rule->last_bucket, missing = last + 1;
    if (rule->shift < 0) {
        for (ptrdiff_t r = 0; r < n; r++) {
            double t = (x[r] - low) * scale;
            t = first > t ? first : t; /* as they are written, these two leave a NaN as it is */
            t = last < t ? last : t;
            t = t < missing ? t : missing;
            buckets[r] = (int32_t)t;
        }
    } else {
        const int64_t low_key = key_of(low);
        for (ptrdiff_t r = 0; r < n; r++) {
            int64_t key = key_of(x[r]);
            uint64_t far = ((uint64_t)(key > low_key ? key : low_key) - (uint64_t)low_key) >> rule->shift;
            far = far < (uint64_t)last ? far : (uint64_t)last;
            buckets[r] = (int32_t)(x[r] == x[r] ? far : (uint64_t)missing);
        }
    }
}

static inline void plain_bins_of(
    const double *x, ptrdiff_t n, const BucketRule *rule, const double *cuts, const int32_t *place, int32_t *bins)
{
    const ptrdiff_t most = ((ptrdiff_t)1 << rule->n_steps) >> 1;
    plain_buckets_of(x, n, rule, bins);
    if (most == 1) {
        for (ptrdiff_t r = 0; r < n; r++) {
            int32_t b = place[bins[r]];
            bins[r] = b + (x[r] > cuts[b]);
        }
    } else {
        for (ptrdiff_t r = 0; r < n; r++) {
            ptrdiff_t b = place[bins[r]];
            for (ptrdiff_t half = most; half > 0; half >>= 1)
                b += half * (x[r] > cuts[b + half - 1]);
            bins[r] = (int32_t)b;
        }
    }
}

#ifdef QUADBOOST_AVX512
FOR_AVX512 static inline __m256i equal_buckets(__m512d x, const BucketRule *rule)
{
    __m512d t = _mm512_mul_pd(_mm512_sub_pd(x, _mm512_set1_pd(rule->low)), _mm512_set1_pd(rule->scale));
    t = _mm512_max_pd(_mm512_setzero_pd(), t); /* of a number and a NaN, the second */
    t = _mm512_min_pd(_mm512_set1_pd(rule->last_bucket), t);
    t = _mm512_min_pd(t, _mm512_set1_pd(rule->last_bucket + 1));
    return _mm512_cvttpd_epi32(t);
}

FOR_AVX512 static inline __m256i growing_buckets(__m512d x, const BucketRule *rule)
{
    const __m512i low = _mm512_set1_epi64(key_of(rule->low)), bits = _mm512_castpd_si512(x);
    __m512i key = _mm512_xor_si512(
        bits, _mm512_and_si512(_mm512_srai_epi64(bits, 63), _mm512_set1_epi64(INT64_MAX)));
    __m512i far = _mm512_sub_epi64(_mm512_max_epi64(key, low), low);
    far = _mm512_srl_epi64(far, _mm_cvtsi32_si128(rule->shift));
    far = _mm512_min_epu64(far, _mm512_set1_epi64((int64_t)rule->last_bucket));
    far = _mm512_mask_mov_epi64(
        far, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi64((int64_t)rule->last_bucket + 1));
    return _mm512_cvtepi64_epi32(far);
}

/* n is a multiple of eight. */
FOR_AVX512 static inline void eightfold_bins_of(
    const double *x, ptrdiff_t n, const BucketRule *rule, const double *cuts, const int32_t *place, int32_t *bins)
{
    const ptrdiff_t most = ((ptrdiff_t)1 << rule->n_steps) >> 1;
    for (ptrdiff_t r = 0; r < n; r += 8) {
        __m512d value = _mm512_loadu_pd(x + r);
        __m256i b = rule->shift < 0 ? equal_buckets(value, rule) : growing_buckets(value, rule);
        b = _mm256_i32gather_epi32(place, b, sizeof(*place));
        for (ptrdiff_t half = most; half > 0; half >>= 1) {
            __m512d cut = _mm512_i32gather_pd(b, cuts + half - 1, sizeof(*cuts));
            __mmask8 above = _mm512_cmp_pd_mask(value, cut, _CMP_GT_OQ);
            b = _mm256_mask_add_epi32(b, above, b, _mm256_set1_epi32((int32_t)half));
        }
        _mm256_storeu_si256((__m256i *)(bins + r), b);
    }
}

FOR_AVX512 static inline void eightfold_add(const int32_t *bins, ptrdiff_t n, const double *value, double *out)
{
    for (ptrdiff_t r = 0; r < n; r += 8) {
        __m512d added = _mm512_i32gather_pd(_mm256_loadu_si256((const __m256i *)(bins + r)), value, sizeof(*value));
        _mm512_storeu_pd(out + r, _mm512_add_pd(_mm512_loadu_pd(out + r), added));
    }
}
#endif

/* How many of n rows are taken eight at once. */
static inline ptrdiff_t rows_in_eights(ptrdiff_t n)
{
#ifdef QUADBOOST_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return n & ~(ptrdiff_t)7;
#endif
    return 0;
}

/* The number of cuts below each value; the number of cuts plus one for NaN. */
static inline void bins_of(
    const double *x, ptrdiff_t n, const BucketRule *rule, const double *cuts, const int32_t *place, int32_t *bins)
{
    const ptrdiff_t done = rows_in_eights(n);
    cuts += rule->first_cut;
    place += rule->first_place;
#ifdef QUADBOOST_AVX512
    if (done)
        eightfold_bins_of(x, done, rule, cuts, place, bins);
#endif
    if (done < n)
        plain_bins_of(x + done, n - done, rule, cuts, place, bins + done);
}

/* Add to each score the value of its bin. */
static inline void add_values(const int32_t *bins, ptrdiff_t n, const double *value, double *out)
{
    ptrdiff_t r = rows_in_eights(n);
#ifdef QUADBOOST_AVX512
    if (r)
        eightfold_add(bins, r, value, out);
#endif
    for (; r < n; r++)
        out[r] += value[bins[r]];
}

#endif
