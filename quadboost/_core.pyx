"""Kernels of boosting on plain arrays: the search for the best voter, and the update of every slope.

Python allocates, the kernels fill; arguments are marked IN / OUT. Kernels trust what they are given (the callers
check) and hold no policy.
"""
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t

from quadboost.kernels.store cimport Store
from quadboost.kernels.types cimport count_t, sum_of_products

import numpy as np

cdef extern from *:
    """
    #ifdef _OPENMP
    #define QUADBOOST_OPENMP 1
    #else
    #define QUADBOOST_OPENMP 0
    #endif
    """
    int QUADBOOST_OPENMP

cdef extern from "rounds.h":
    ctypedef struct penalty_t:
        double shrink, low, high
    ctypedef struct voters_t:
        double* slope
        const double* mean
        const double* curve
        const double* inverse
        const double* anchor
        const double* shrink
        const double* least
        const double* most
    ctypedef struct column_t:
        const void* sums
        bint has_counts
    void move(double*, const double*, column_t, double, double, Py_ssize_t) noexcept nogil
    const int TOGETHER
    void move_together(
        double*, const double*, const column_t*, const double*, const double*, Py_ssize_t) noexcept nogil
    ctypedef struct offer_t:
        double decrease
        Py_ssize_t voter
    offer_t move_and_rate(
        voters_t, column_t, double, double, penalty_t, Py_ssize_t, Py_ssize_t) noexcept nogil

cdef extern from "solve.h":
    const int MOST_IN_BLOCK
    void solve_semidefinite(const double*, double*, Py_ssize_t, double, double, double*) noexcept nogil
    void multiply_by_upper_half(const double*, const double*, double*, Py_ssize_t) noexcept nogil

cdef enum:
    VOTERS_FOR_THREADS = 500000  # below which a second thread costs more than it brings
    MOST_PARTS = 64
    WORK_AT_A_TIME = 50000000  # counts of rows for Gram columns, between two chances to interrupt


def openmp_enabled() -> bool:
    """Whether the kernels were compiled with OpenMP."""
    return bool(QUADBOOST_OPENMP)


def dot(const double[::1] x, const double[::1] y):
    """The sum of products, in an order that does not depend on the machine, as that of a library may."""
    return sum_of_products(&x[0], &y[0], x.shape[0]) if x.shape[0] > 0 else 0.0


def solve(
    const double[:, ::1] gram,       # IN  (n, n) positive semidefinite; its upper half is read
    double[::1] x,                   # IN/OUT (n) the right-hand side, then the solution
    double least,                    # what is left of a diagonal element and is not above this is rounding
    double tol,                      # stop when an iteration brings no more than this share of what all brought
):
    """Solve gram x = b. An unknown that others determine up to rounding becomes 0."""
    cdef Py_ssize_t n = x.shape[0]
    cdef double[::1] scratch = np.empty(n * (MOST_IN_BLOCK + 4))
    if n > 0:
        with nogil:
            solve_semidefinite(&gram[0, 0], &x[0], n, least, tol, &scratch[0])


def multiply(
    const double[:, ::1] gram,       # IN  (n, n) symmetric; its upper half is read
    const double[::1] x,             # IN  (n)
    double[::1] out,                 # OUT (n)
):
    if x.shape[0] > 0:
        with nogil:
            multiply_by_upper_half(&gram[0, 0], &x[0], &out[0], x.shape[0])


def gram_of(
    Store store,                     # IN  Gram columns: sums over rows
    const int64_t[::1] voter,        # IN  (n) ascending
    const double[::1] centre,        # IN  (n) subtracted from what each voter says: its mean, or zero
    double total_weight,
    double[:, ::1] out,              # OUT (n, n) their Gram matrix, upper half
    Py_ssize_t first,
):
    """Write rows from number `first` on; returns how far it came: further needs a column."""
    cdef Py_ssize_t i = first, n = voter.shape[0]
    cdef double per_weight = 1.0 / total_weight
    cdef const void* column
    with nogil:
        while i < n:
            column = store.fetch(voter[i])
            if column == NULL:
                break
            if store.has_counts:
                _gram_row(<const int32_t*> column, &voter[0], &centre[0], i, n, per_weight, &out[i, 0])
            else:
                _gram_row(<const double*> column, &voter[0], &centre[0], i, n, per_weight, &out[i, 0])
            i += 1
    return i


cdef void _gram_row(
    const count_t* column, const int64_t* voter, const double* centre, Py_ssize_t i, Py_ssize_t n, double per_weight,
    double* out,
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(i, n):
        out[j] = column[voter[j]] * per_weight - centre[i] * centre[j]


# ---------------------------------------------------------------------------------------------
# The dual of a penalty that is ridge x^2 + 2 shrink |x| for x from low to high, for each voter
# ---------------------------------------------------------------------------------------------

def steepest(
    const double[::1] edge,              # IN  (K)
    const double[:] ridge, const double[:] shrink, const double[:] low, const double[:] high,   # IN  (K)
):
    """The largest edge in units of what shrinks it, among those that nothing else holds."""
    cdef double most = 0, end
    cdef Py_ssize_t j
    with nogil:
        for j in range(edge.shape[0]):
            end = high[j] if edge[j] > 0 else -low[j]
            if edge[j] != 0 and ridge[j] == 0 and end == INFINITY:
                most = max(most, fabs(edge[j]) / shrink[j])
    return most


def conjugate(
    const double[::1] edge, double scale,    # IN  (K), such that the answer is finite
    const double[:] ridge, const double[:] shrink, const double[:] low, const double[:] high,   # IN  (K)
):
    """The sum over voters of the largest 2 scale edge x - penalty(x)."""
    cdef double total = 0, pull, end, x
    cdef Py_ssize_t j
    with nogil:
        for j in range(edge.shape[0]):
            pull = fabs(scale * edge[j]) - shrink[j]
            end = high[j] if scale * edge[j] > 0 else -low[j]
            if pull > 0 and (ridge[j] > 0 or end < INFINITY):  # else it is zero, but for rounding
                x = min(pull / ridge[j], end) if ridge[j] > 0 else end
                total += x * (2 * pull - ridge[j] * x)
    return total


# ---------------------------------------------------------------------------------------------
# Rounds: pick the voter that decreases the objective most, weigh it, update every slope
# ---------------------------------------------------------------------------------------------

cdef class Slopes:
    """The slope of every voter on one set of rows, and the risk there, as weights move.

    A slope is an edge, mean(h r), less ridge times the weight that an update would replace (zero on validation rows).
    The residual is r = y - b - sum a_j h_j, where the intercept b follows the weights:
    when a_j moves by d, b moves by -d * centre_j (centre is zero without an intercept).
    """
    cdef public double risk
    cdef public double residual_mean
    cdef double[::1] _slope
    cdef const double[::1] _mean, _eta, _centre
    cdef Store _store
    cdef double _per_weight

    def __init__(
        self, double[::1] slope, const double[::1] mean, const double[::1] eta, const double[::1] centre,
        Store store,                     # Gram columns: sums over rows
        double total_weight, double risk, double residual_mean,
    ):
        self._slope, self._mean, self._eta, self._centre = slope, mean, eta, centre
        self._store, self._per_weight = store, 1.0 / total_weight
        self.risk, self.residual_mean = risk, residual_mean

    cdef void _move_risk(self, Py_ssize_t j, double edge, double delta) noexcept nogil:
        cdef double centre = self._centre[j]
        cdef double centred_edge = edge - centre * self.residual_mean
        cdef double eta = self._eta[j] - centre * (2 * self._mean[j] - centre)
        self.risk -= delta * (2 * centred_edge - delta * eta)
        self.residual_mean -= delta * (self._mean[j] - centre)

    cdef column_t _column(self, Py_ssize_t j) noexcept nogil:
        cdef column_t column
        column.sums, column.has_counts = <const void*> self._store._address[j], self._store.has_counts
        return column

    cdef void _move_slopes(self, Py_ssize_t j, double delta) noexcept nogil:
        cdef double p = delta * self._per_weight, q = delta * self._centre[j]
        move(&self._slope[0], &self._mean[0], self._column(j), p, q, self._slope.shape[0])

    def move(self, const int64_t[::1] voter, const double[::1] delta, Py_ssize_t first):
        """Change weights, from number `first` on; returns how far it came: further needs a column."""
        cdef Py_ssize_t i = first, n
        with nogil:
            while True:
                n = 0
                while n < TOGETHER and i + n < voter.shape[0] and self._store.fetch(voter[i + n]) != NULL:
                    n += 1
                if n == 0:
                    break
                self._move_group(&voter[i], &delta[i], n)
                i += n
        return i

    cdef void _move_group(self, const int64_t* voter, const double* delta, Py_ssize_t n) noexcept nogil:
        """Change at most TOGETHER weights, to the same bits as one after the other."""
        cdef column_t column[TOGETHER]
        cdef double p[TOGETHER]
        cdef double q[TOGETHER]
        cdef double edge
        cdef Py_ssize_t i, k
        for i in range(n):
            column[i] = self._column(voter[i])
            p[i], q[i] = delta[i] * self._per_weight, delta[i] * self._centre[voter[i]]
            edge = self._slope[voter[i]]
            for k in range(i):
                edge -= p[k] * _number(column[k], voter[i]) - q[k] * self._mean[voter[i]]
            self._move_risk(voter[i], edge, delta[i])
        if n == TOGETHER:
            move_together(&self._slope[0], &self._mean[0], column, p, q, self._slope.shape[0])
            return
        for i in range(n):
            move(&self._slope[0], &self._mean[0], column[i], p[i], q[i], self._slope.shape[0])


cdef inline double _number(column_t column, Py_ssize_t i) noexcept nogil:
    return (<const int32_t*> column.sums)[i] if column.has_counts else (<const double*> column.sums)[i]


cdef inline double _within(double x, double low, double high) noexcept nogil:
    x = x if x < high else high
    return x if x > low else low


cdef class Rounds:
    """The boosting loop. Comes back to Python for a Gram column, at the end of a log, or to stop."""
    cdef public double objective
    cdef Slopes _train, _validation
    cdef double[::1] _weight, _anchor
    cdef const double[::1] _eta, _curve, _inverse
    cdef const double[:] _ridge, _shrink, _low, _high, _lower, _upper
    cdef double[::1] _least, _most
    cdef penalty_t _penalty
    cdef offer_t _best
    cdef bint _rated, _voters_differ, _shrinks
    cdef int _n_threads

    LOG_FULL, NEEDS_COLUMN, CONVERGED, PAUSED = 0, 1, 2, 3

    def __init__(
        self, Slopes train, Slopes validation,   # validation may be None
        double[::1] weight,                    # IN/OUT weight of every voter
        double[::1] anchor,                    # the weight that an update replaces: `weight` itself, or zeros where it adds
        const double[::1] eta,                 # IN  (centred) second moment of every voter
        int n_threads,
    ):
        self._train, self._validation, self._n_threads = train, validation, n_threads
        self._weight, self._anchor, self._eta = weight, anchor, eta

    def set_penalty(
        self,
        const double[::1] curve,               # IN  eta + ridge
        const double[::1] inverse,             # IN  1 / curve, 0 for a voter that is no candidate
        # IN  the penalty of every voter: its quadratic part, its soft threshold, the least and the largest weight given
        const double[:] ridge, const double[:] shrink, const double[:] low, const double[:] high,
        const double[:] lower, const double[:] upper,   # IN  bounds of a weight, to which updates may add
        double[::1] least, double[::1] most,   # OUT what may be added, where voters have rules of their own; else empty
        bint shrinks,                          # of these: whether a soft threshold is above zero; they are in one piece
    ):
        self._curve, self._inverse, self._voters_differ, self._shrinks = curve, inverse, least.shape[0] > 0, shrinks
        self._ridge, self._shrink, self._low, self._high = ridge, shrink, low, high
        self._lower, self._upper, self._least, self._most = lower, upper, least, most
        if self._eta.shape[0] > 0:
            self._penalty.shrink, self._penalty.low, self._penalty.high = shrink[0], low[0], high[0]
        self._rated = False

    cdef void _make_room(self, Py_ssize_t j) noexcept nogil:
        """Find what may be added to a weight."""
        cdef double down = self._lower[j] - self._weight[j], up = self._upper[j] - self._weight[j]
        cdef double low = self._low[j] - self._anchor[j], high = self._high[j] - self._anchor[j]
        self._least[j] = down if down > low else low
        self._most[j] = up if up < high else high

    cdef double _edge(self, Py_ssize_t j) noexcept nogil:
        return self._train._slope[j] + self._ridge[j] * self._anchor[j]

    cdef void _set_weight(self, Py_ssize_t j, double weight) noexcept nogil:
        cdef double before = self._anchor[j]
        self._weight[j] = weight
        self._train._slope[j] -= self._ridge[j] * (self._anchor[j] - before)

    cdef double _rule(self, Py_ssize_t j, double z, double rest) noexcept nogil:
        """The weight that minimises the objective over one voter's weight, beside the rest of it, which stays."""
        cdef double lowered = z - self._shrink[j], raised = z + self._shrink[j]
        cdef double w = ((lowered if lowered > 0 else 0) + (raised if raised < 0 else 0)) * self._inverse[j]
        w = _within(w, self._low[j], self._high[j])
        return _within(w, self._lower[j] - rest, self._upper[j] - rest)

    cdef double _add(self, Py_ssize_t j, double z) noexcept nogil:
        """The weight of an update of a round, which replaces the anchor; the total is within its bounds to the bit."""
        cdef double rest = self._weight[j] - self._anchor[j]  # corrective: 0, and the total is `new_weight`
        cdef double new_weight = self._rule(j, z, rest)
        self._set_weight(j, _within(rest + new_weight, self._lower[j], self._upper[j]))
        if self._voters_differ:
            self._make_room(j)
        return new_weight

    cdef void _pick(self, Py_ssize_t moved, double delta) noexcept nogil:
        """Update the slopes after voter `moved` changed by delta, and find the best voter of the next round."""
        cdef double p = delta * self._train._per_weight, q
        cdef offer_t best[MOST_PARTS]
        cdef Py_ssize_t n_voters = self._eta.shape[0], part
        cdef int n_parts = 1 if n_voters < VOTERS_FOR_THREADS else min(self._n_threads, <int> MOST_PARTS)
        cdef column_t column
        cdef voters_t voters
        self._best.decrease, self._best.voter = -1.0, 0
        if n_voters == 0:
            return
        q, column = delta * self._train._centre[moved], self._train._column(moved)
        voters.slope, voters.mean, voters.curve = &self._train._slope[0], &self._train._mean[0], &self._curve[0]
        voters.inverse, voters.anchor = &self._inverse[0], &self._anchor[0]
        voters.shrink = &self._shrink[0] if self._voters_differ and self._shrinks else NULL
        voters.least = &self._least[0] if self._voters_differ else NULL
        voters.most = &self._most[0] if self._voters_differ else NULL
        if delta == 0:  # any column will do
            column.sums, column.has_counts = &self._eta[0], False
        if n_parts == 1:
            self._best = move_and_rate(voters, column, p, q, self._penalty, 0, n_voters)
            return
        for part in prange(n_parts, schedule="static", num_threads=n_parts):
            best[part] = move_and_rate(
                voters, column, p, q, self._penalty, part * n_voters // n_parts, (part + 1) * n_voters // n_parts)
        self._best = best[0]
        for part in range(1, n_parts):
            if best[part].decrease > self._best.decrease:  # strictly: of equal voters the first wins
                self._best = best[part]

    def run(
        self, int64_t[::1] voter,        # OUT one entry a round
        double[:, ::1] log,              # OUT (rounds, 6): edge, weight given, total weight, risk, objective, validation risk
        Py_ssize_t first, Py_ssize_t last, double floor,
    ):
        """Rounds first..last of the log; stops where the best decrease is not above `floor`.

        Returns (rounds logged so far, why it came back, the voter whose column is needed).
        """
        cdef Py_ssize_t t = first, j
        cdef double edge, new_weight, before, delta
        cdef int why = 0
        cdef Slopes train = self._train, validation = self._validation
        cdef bint has_validation = validation is not None
        with nogil:
            if not self._rated:
                if self._voters_differ:
                    for j in range(self._weight.shape[0]):
                        self._make_room(j)
                self._pick(0, 0.0)
                self._rated = True
            while t < last:
                j = self._best.voter
                if not self._best.decrease > floor:
                    why = 2
                    break
                if train._store.fetch(j) == NULL or (has_validation and validation._store.fetch(j) == NULL):
                    why = 1
                    break
                edge = self._edge(j)
                before = self._anchor[j]
                new_weight = self._add(j, edge + self._eta[j] * before)
                delta = new_weight - before
                # The second term is what the risk lacks because the intercept is rounded.
                self.objective -= self._best.decrease - 2 * delta * train._centre[j] * train.residual_mean
                train._move_risk(j, edge, delta)
                if has_validation:
                    validation._move_risk(j, validation._slope[j], delta)
                    validation._move_slopes(j, delta)
                    log[t, 5] = validation.risk
                voter[t] = j
                log[t, 0] = edge
                log[t, 1] = new_weight
                log[t, 2] = self._weight[j]
                log[t, 3] = train.risk
                log[t, 4] = self.objective
                t += 1
                self._pick(j, delta)
                if train._store.work > WORK_AT_A_TIME or (has_validation and validation._store.work > WORK_AT_A_TIME):
                    why = 3
                    break
        train._store.work = 0
        if has_validation:
            validation._store.work = 0
        return t, why, self._best.voter

    def sweep(self, Py_ssize_t first, int64_t[::1] voter, double[::1] total, Py_ssize_t n_logged):
        """Apply the re-weighting rule once to every voter of the ensemble, from voter `first` on.

        Returns (updates logged, the voter whose column is needed, or K when the sweep is done).
        """
        cdef Py_ssize_t j, n_voters = self._weight.shape[0]
        cdef double edge, new, delta
        cdef Slopes train = self._train, validation = self._validation
        cdef bint has_validation = validation is not None
        self._rated = False
        j = first
        with nogil:
            while j < n_voters:
                if self._weight[j] != 0:
                    if train._store.fetch(j) == NULL or (has_validation and validation._store.fetch(j) == NULL):
                        break
                    edge = self._edge(j)
                    new = self._rule(j, edge + self._eta[j] * self._weight[j], 0.0)
                    delta = new - self._weight[j]
                    if delta != 0:
                        self._set_weight(j, new)
                        train._move_risk(j, edge, delta)
                        train._move_slopes(j, delta)
                        if has_validation:
                            validation._move_risk(j, validation._slope[j], delta)
                            validation._move_slopes(j, delta)
                        voter[n_logged] = j
                        total[n_logged] = new
                        n_logged += 1
                j += 1
        return n_logged, j

    def rerate(self):
        """Forget the picked voter: slopes or weights were changed from outside."""
        self._rated = False


# ---------------------------------------------------------------------------------------------
# The risk on other rows along a run
# ---------------------------------------------------------------------------------------------

cdef double _product(
    const count_t* column, const int64_t* voters, const double* weight, Py_ssize_t n
) noexcept nogil:
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += weight[i] * column[voters[i]]
        s1 += weight[i + 1] * column[voters[i + 1]]
        s2 += weight[i + 2] * column[voters[i + 2]]
        s3 += weight[i + 3] * column[voters[i + 3]]
        i += 4
    while i < n:
        s0 += weight[i] * column[voters[i]]
        i += 1
    return (s0 + s1) + (s2 + s3)


def follow_risk(
    const int64_t[::1] voter,        # IN  (n) whose weight changes
    const double[::1] total,         # IN  (n) the weight it then has
    Py_ssize_t first,                # IN  the first change to follow
    Store store,                     # IN  Gram columns: sums over those rows
    double total_weight,
    const double[::1] first_edge, const double[::1] mean, const double[::1] eta, const double[::1] centre,  # IN  (K)
    int64_t[::1] place,              # IN/OUT (K) where a voter is in `drawn`; -1: nowhere
    int64_t[::1] drawn,              # IN/OUT the voters so far
    double[::1] weight,              # IN/OUT and their weights
    double[::1] state,               # IN/OUT risk, mean residual, by how much the intercept fell, number of voters
    double[::1] risk,                # OUT (n) after each change
):
    """Follow the risk on one set of rows as weights change; returns how far it came: further needs a column.

    The edge of one voter is all that a change needs, and it takes a look at the voters drawn so far, not at all.
    """
    cdef Py_ssize_t t = first, j, k, n_drawn = <Py_ssize_t> state[3]
    cdef double here = state[0], residual_mean = state[1], fallen = state[2]
    cdef double delta, edge, centred_edge, square, product
    cdef const void* column
    with nogil:
        while t < voter.shape[0]:
            j = voter[t]
            column = store.fetch(j)
            if column == NULL:
                break
            if store.has_counts:
                product = _product(<const int32_t*> column, &drawn[0], &weight[0], n_drawn)
            else:
                product = _product(<const double*> column, &drawn[0], &weight[0], n_drawn)
            edge = first_edge[j] + mean[j] * fallen - product / total_weight
            k = place[j]
            if k < 0:
                k = place[j] = n_drawn
                drawn[k], weight[k] = j, 0.0
                n_drawn += 1
            delta = total[t] - weight[k]
            weight[k] = total[t]
            centred_edge = edge - centre[j] * residual_mean
            square = eta[j] - centre[j] * (2 * mean[j] - centre[j])
            here -= delta * (2 * centred_edge - delta * square)
            residual_mean -= delta * (mean[j] - centre[j])
            fallen += delta * centre[j]
            risk[t] = here
            t += 1
    state[0], state[1], state[2], state[3] = here, residual_mean, fallen, n_drawn
    return t
