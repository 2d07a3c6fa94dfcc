"""Kernels of rules, for explanations: which conditions hold together, how often, and what each is worth.

A rule is some conditions; its pattern in a row has bit i where condition i holds. Python allocates, the kernels fill;
arguments are marked IN / OUT. Every row is worked on by one thread, so that their number changes no bit.
"""
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

cdef extern from "patterns.h":
    void ask(
        const double*, Py_ssize_t, const double*, const double*, const uint8_t*, Py_ssize_t, uint8_t, uint8_t*
    ) noexcept nogil
    void join(const uint8_t*, Py_ssize_t, const int32_t*, Py_ssize_t, Py_ssize_t, uint16_t*) noexcept nogil
    void look_up(const double*, const uint16_t*, Py_ssize_t, double*) noexcept nogil

cdef enum:
    ROWS = 1024                       # at a time, so that what is known of them stays in a core's own memory

ROWS_TOGETHER = ROWS


cdef class Questions:
    """Conditions, each of one feature, and the rules that ask for them."""

    cdef const int32_t[::1] feature  # of a condition
    cdef const int64_t[::1] start    # (n_conditions + 1) of its intervals
    cdef const double[::1] low, high
    cdef const uint8_t[::1] outside
    cdef const uint8_t[::1] missing  # of a condition: whether a missing value satisfies it
    cdef const int64_t[::1] rule     # (n_rules + 1) where the conditions of each begin
    cdef const int32_t[::1] condition

    def __init__(self, feature, start, low, high, outside, missing, rule, condition):
        self.feature, self.start, self.low, self.high = feature, start, low, high
        self.outside, self.missing, self.rule, self.condition = outside, missing, rule, condition

    cdef void ask_all(self, const double[:, ::1] columns, Py_ssize_t first, Py_ssize_t n, uint8_t* holds) noexcept nogil:
        """Which conditions hold for the rows from `first` on, n of them."""
        cdef Py_ssize_t c, i
        for c in range(self.feature.shape[0]):
            i = self.start[c]
            ask(
                &columns[self.feature[c], first], n, &self.low[i], &self.high[i], &self.outside[i],
                self.start[c + 1] - i, self.missing[c], holds + c * ROWS,
            )


def add_counts(
    Questions rules,
    const double[:, ::1] columns,    # IN  (d, m)
    const double[::1] weight,        # IN  (m), or of no rows: all weigh 1
    const int64_t[::1] start,        # IN  where the counts of each rule begin
    uint8_t[:, ::1] holds,           # scratch (n_conditions, ROWS)
    double[::1] counts,              # OUT of every pattern of every rule; added to
):
    """Count how often each pattern occurs."""
    cdef Py_ssize_t block, first, n, r, j, m = columns.shape[1]
    cdef uint16_t pattern[ROWS]
    cdef double* counts_of_rule
    with nogil:
        for block in range((m + ROWS - 1) // ROWS):
            first = block * ROWS
            n = min(ROWS, m - first)
            rules.ask_all(columns, first, n, &holds[0, 0])
            for j in range(start.shape[0]):
                join(&holds[0, 0], ROWS, &rules.condition[rules.rule[j]], rules.rule[j + 1] - rules.rule[j], n, pattern)
                counts_of_rule = &counts[start[j]]
                if weight.shape[0] == 0:
                    for r in range(n):
                        counts_of_rule[pattern[r]] += 1.0
                else:
                    for r in range(n):
                        counts_of_rule[pattern[r]] += weight[first + r]


def write_patterns(
    Questions rules,
    const double[:, ::1] columns,    # IN  (d, m)
    uint8_t[:, ::1] holds,           # scratch (n_conditions, ROWS)
    int64_t[:, ::1] pattern,         # OUT (n_rules, m)
):
    """The pattern of every rule, of any length up to 62, in every row."""
    cdef Py_ssize_t block, first, n, r, j, i, m = columns.shape[1]
    cdef const uint8_t* holds_here
    cdef int64_t* out
    with nogil:
        for block in range((m + ROWS - 1) // ROWS):
            first = block * ROWS
            n = min(ROWS, m - first)
            rules.ask_all(columns, first, n, &holds[0, 0])
            for j in range(pattern.shape[0]):
                out = &pattern[j, first]
                for r in range(n):
                    out[r] = 0
                for i in range(rules.rule[j + 1] - rules.rule[j]):
                    holds_here = &holds[rules.condition[rules.rule[j] + i], 0]
                    for r in range(n):
                        out[r] |= <int64_t> holds_here[r] << i


def add_worth(
    Questions rules,
    const double[:, ::1] columns,    # IN  (d, m)
    const double[::1] table,         # IN  of every rule, condition, output and pattern: what the condition is worth
    const int64_t[::1] start,        # IN  where the tables of each rule begin
    uint8_t[:, :, ::1] holds,        # scratch (n_threads, n_conditions, ROWS)
    double[:, :, ::1] out,           # OUT (d, n_outputs, m) added to
    int n_threads,
):
    """Add what the conditions of all rules are worth to their features."""
    cdef Py_ssize_t block, n_blocks = (columns.shape[1] + ROWS - 1) // ROWS
    for block in prange(n_blocks, num_threads=n_threads, schedule="static", nogil=True):
        _add_rows(rules, columns, table, start, &holds[threadid(), 0, 0], out, block * ROWS)


cdef void _add_rows(
    Questions rules, const double[:, ::1] columns, const double[::1] table, const int64_t[::1] start, uint8_t* holds,
    double[:, :, ::1] out, Py_ssize_t first,
) noexcept nogil:
    cdef Py_ssize_t j, i, k, c, n_conditions, n = min(ROWS, columns.shape[1] - first)
    cdef uint16_t pattern[ROWS]
    cdef const double* of_condition
    rules.ask_all(columns, first, n, holds)
    for j in range(start.shape[0]):
        of_condition = &table[start[j]]
        c = rules.rule[j]
        n_conditions = rules.rule[j + 1] - c
        join(holds, ROWS, &rules.condition[c], n_conditions, n, pattern)
        for i in range(n_conditions):
            for k in range(out.shape[1]):
                look_up(of_condition, pattern, n, &out[rules.feature[rules.condition[c + i]], k, first])
                of_condition = of_condition + (1 << n_conditions)


def write_worth(
    const int64_t[::1] pattern,      # IN  of one rule, those that occur
    const double[::1] share,         # IN  of the rows that have each
    const double[:, ::1] gained,     # IN  (k + 1, k + 1) shares of each condition gained, and
    const double[:, ::1] lost,       # IN  of each lost, by how many there are of both
    double[:, ::1] table,            # OUT (2**k, k) zeros before
):
    """What each condition of a rule is worth, by the pattern of a row, against rows with these patterns."""
    cdef Py_ssize_t p, i, a, b, k = table.shape[1]
    cdef int64_t full = (1 << k) - 1, there, kept
    cdef double up, down
    cdef double* shares
    with nogil:
        for p in range(pattern.shape[0]):
            # Only a row that has all the conditions that fail there can end up with all.
            there = kept = pattern[p]
            a = _n_bits(full & ~there)
            while True:
                b = _n_bits(there & ~kept)
                shares = &table[(full & ~there) | kept, 0]
                up, down = share[p] * gained[a, b], share[p] * lost[a, b]
                for i in range(k):
                    if not there >> i & 1:
                        shares[i] += up
                    elif not kept >> i & 1:
                        shares[i] -= down
                if kept == 0:
                    break
                kept = (kept - 1) & there


cdef inline Py_ssize_t _n_bits(int64_t word) noexcept nogil:
    cdef Py_ssize_t n = 0
    while word:
        word &= word - 1
        n += 1
    return n
