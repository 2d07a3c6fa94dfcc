/* A symmetric system of linear equations, by Cholesky's method. Our own, because the same input is to give the same
 * bits on every machine: a library would sum in an order that depends on the processor and on the number of threads. */
#ifndef QUADBOOST_SOLVE_H
#define QUADBOOST_SOLVE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compiler.h"

#define TOGETHER 4 /* rows of the factor that are subtracted in one go, while the row they change is at hand */

FOR_WIDE_MACHINES_TOO static void subtract_rows(
    double *restrict row, const double *restrict u0, const double *restrict u1, const double *restrict u2,
    const double *restrict u3, const double *restrict c, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        row[i] -= (c[0] * u0[i] + c[1] * u1[i]) + (c[2] * u2[i] + c[3] * u3[i]);
}

FOR_WIDE_MACHINES_TOO static void subtract_row(double *restrict row, const double *restrict u, double c, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        row[i] -= c * u[i];
}

/* Make row k of the factor. An unknown that the ones before it determine up to rounding gets an empty row. */
static void make_row(double *a, ptrdiff_t n, ptrdiff_t k, double least)
{
    double *row = a + k * n;
    if (row[k] <= least) {
        memset(row + k, 0, (size_t)(n - k) * sizeof(double));
        return;
    }
    double root = sqrt(row[k]);
    for (ptrdiff_t i = k; i < n; i++)
        row[i] /= root;
}

/* Solve a x = b for a positive semidefinite a of shape (n, n), of which the upper half is read and overwritten, and
 * x replaces b. An unknown is 0 where what is left of its diagonal element is not above `least`. */
static void solve_semidefinite(double *restrict a, double *restrict b, ptrdiff_t n, double least)
{
    for (ptrdiff_t first = 0; first < n; first += TOGETHER) {
        ptrdiff_t last = first + TOGETHER < n ? first + TOGETHER : n;
        for (ptrdiff_t k = first; k < last; k++) {
            make_row(a, n, k, least);
            for (ptrdiff_t i = k + 1; i < last; i++)
                subtract_row(a + i * n + i, a + k * n + i, a[k * n + i], n - i);
        }
        for (ptrdiff_t i = last; i < n; i++) { /* only then is the group a whole one */
            double *u = a + first * n + i;
            double c[TOGETHER] = {u[0], u[n], u[2 * n], u[3 * n]};
            subtract_rows(a + i * n + i, u, u + n, u + 2 * n, u + 3 * n, c, n - i);
        }
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        double *row = a + k * n;
        b[k] = row[k] > 0 ? b[k] / row[k] : 0;
        subtract_row(b + k + 1, row + k + 1, b[k], n - k - 1);
    }
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        double *row = a + k * n;
        for (ptrdiff_t i = k + 1; i < n; i++)
            b[k] -= row[i] * b[i];
        b[k] = row[k] > 0 ? b[k] / row[k] : 0;
    }
}

#endif
