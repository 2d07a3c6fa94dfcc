/* A symmetric system of linear equations, by conjugate gradients. Our own, because the same input is to give the same
 * bits on every machine: a library would sum in an order that depends on the processor and on the number of threads. */
#ifndef QUADBOOST_SOLVE_H
#define QUADBOOST_SOLVE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compiler.h"

#define MOST_IN_BLOCK 128
#define MOST_ITERATIONS 50 /* of a solution that is not to be exact: what is left after them is not worth more */
#define NEARLY_AGREE 0.3 /* correlation of an unknown with the one before it, from which both are in one block */

FOR_WIDE_MACHINES_TOO static void subtract_row(double *restrict row, const double *restrict u, double c, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        row[i] -= c * u[i];
}

/* Eight partial sums in a fixed order. */
FOR_WIDE_MACHINES_TOO static double product(const double *restrict x, const double *restrict y, ptrdiff_t n)
{
    double sum[8] = {0};
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (ptrdiff_t k = 0; k < 8; k++)
            sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++)
        sum[0] += x[i] * y[i];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* y = a x for a symmetric a of shape (n, n), of which the upper half is read. */
FOR_WIDE_MACHINES_TOO static void multiply_by_upper_half(
    const double *restrict a, const double *restrict x, double *restrict y, ptrdiff_t n)
{
    memset(y, 0, (size_t)n * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = a + i * n;
        double sum[8] = {0}, x_i = x[i];
        ptrdiff_t j = i + 1;
        for (; j + 8 <= n; j += 8)
            for (ptrdiff_t k = 0; k < 8; k++) {
                sum[k] += row[j + k] * x[j + k];
                y[j + k] += row[j + k] * x_i;
            }
        for (; j < n; j++) {
            sum[0] += row[j] * x[j];
            y[j] += row[j] * x_i;
        }
        y[i] += row[i] * x_i + (((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])));
    }
}

/* Factor a positive semidefinite block of shape (n, n) by Cholesky's method; its upper half is read and overwritten.
 * An unknown that the ones before it determine up to rounding gets an empty row: what is left of its diagonal element
 * is not above `least`. */
static void factor(double *a, ptrdiff_t n, double least)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        double *row = a + k * n;
        if (row[k] <= least) {
            memset(row + k, 0, (size_t)(n - k) * sizeof(double));
            continue;
        }
        double root = sqrt(row[k]);
        for (ptrdiff_t i = k; i < n; i++)
            row[i] /= root;
        for (ptrdiff_t i = k + 1; i < n; i++)
            subtract_row(a + i * n + i, row + i, row[i], n - i);
    }
}

/* Solve for x by a factor, in place. An unknown with an empty row becomes 0. */
static void substitute(const double *a, double *x, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const double *row = a + k * n;
        x[k] = row[k] > 0 ? x[k] / row[k] : 0;
        subtract_row(x + k + 1, row + k + 1, x[k], n - k - 1);
    }
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        const double *row = a + k * n;
        x[k] = row[k] > 0 ? (x[k] - product(row + k + 1, x + k + 1, n - k - 1)) / row[k] : 0;
    }
}

/* Where the block that begins at unknown `first` ends. Voters with neighbouring thresholds nearly agree: they are in
 * one block, which is solved exactly, and other blocks hardly matter to it. */
static ptrdiff_t block_end(const double *a, ptrdiff_t n, ptrdiff_t first)
{
    ptrdiff_t last = first + 1;
    if (n <= MOST_IN_BLOCK)
        return n;
    while (last < n && last - first < MOST_IN_BLOCK) {
        double here = a[last * n + last], before = a[(last - 1) * n + last - 1], both = a[(last - 1) * n + last];
        if (both * both < NEARLY_AGREE * NEARLY_AGREE * here * before)
            break;
        last++;
    }
    return last;
}

/* Solve a x = b for a positive semidefinite a of shape (n, n), of which the upper half is read; x replaces b.
 *
 * Conjugate gradients, preconditioned by the blocks of the diagonal. They stop when an iteration brings no more than
 * `tol` of what all have brought so far. `scratch` has room for n * (MOST_IN_BLOCK + 4) numbers. */
static void solve_semidefinite(
    const double *restrict a, double *restrict x, ptrdiff_t n, double least, double tol, double *restrict scratch)
{
    double *residual = scratch, *ahead = residual + n, *way = ahead + n, *change = way + n, *blocks = change + n;
    double gain = 0, brought = 0, total = 0;
    for (ptrdiff_t first = 0, last; first < n; first = last) {
        last = block_end(a, n, first);
        double *block = blocks + first * MOST_IN_BLOCK;
        for (ptrdiff_t i = first; i < last; i++)
            memcpy(block + (i - first) * (last - first), a + i * n + first, (size_t)(last - first) * sizeof(double));
        factor(block, last - first, least);
    }
    memcpy(residual, x, (size_t)n * sizeof(double));
    memset(x, 0, (size_t)n * sizeof(double));
    memset(way, 0, (size_t)n * sizeof(double));
    for (ptrdiff_t iteration = 0; iteration < n && (iteration < MOST_ITERATIONS || tol == 0); iteration++) {
        memcpy(ahead, residual, (size_t)n * sizeof(double));
        for (ptrdiff_t first = 0, last; first < n; first = last) {
            last = block_end(a, n, first);
            substitute(blocks + first * MOST_IN_BLOCK, ahead + first, last - first);
        }
        double before = gain;
        gain = product(residual, ahead, n);
        for (ptrdiff_t i = 0; i < n; i++)
            way[i] = ahead[i] + (before > 0 ? gain / before : 0) * way[i];
        multiply_by_upper_half(a, way, change, n);
        double curvature = product(way, change, n);
        if (!(gain > 0 && curvature > 0))
            return;
        double step = gain / curvature;
        subtract_row(x, way, -step, n);
        subtract_row(residual, change, step, n);
        brought = step * gain;
        total += brought;
        if (brought <= tol * total)
            return;
    }
}

#endif
