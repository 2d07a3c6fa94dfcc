"""Sums of random signs along sorted rows, 64 draws at a time."""
from libc.stdint cimport int16_t, int32_t, uint8_t, uint64_t

cdef enum:
    DRAWS = 64         # of a word: one bit of each row's word is one draw's sign
    SAFE_ROWS = 30000  # sums of so many signs fit in 16 bits, of which a register holds twice as many

# Eight signs for every byte: a row adds its signs by eight table look-ups.
cdef int16_t SIGNS[256][8]
cdef int _byte, _bit
for _byte in range(256):
    for _bit in range(8):
        SIGNS[_byte][_bit] = 1 if (_byte >> _bit) & 1 else -1


cdef void _scan_word(
    const int32_t[::1] rows, const uint8_t[::1] may_cut, const uint64_t[::1] word,
    int32_t[::1] total, int32_t[::1] low, int32_t[::1] high,
) noexcept nogil:
    cdef Py_ssize_t i, last, s, g, first = 0, n = rows.shape[0]
    cdef uint64_t signs
    cdef const int16_t* eight
    cdef int16_t here[DRAWS]
    cdef int16_t least[DRAWS]
    cdef int16_t most[DRAWS]
    while first < n:
        last = min(n, first + SAFE_ROWS)
        for s in range(DRAWS):
            here[s] = 0
            least[s] = SAFE_ROWS
            most[s] = -SAFE_ROWS
        for i in range(first, last):
            signs = word[rows[i]]
            for g in range(8):
                eight = SIGNS[(signs >> (8 * g)) & 255]
                for s in range(8):
                    here[8 * g + s] += eight[s]
            if may_cut[i]:
                for s in range(DRAWS):
                    least[s] = min(least[s], here[s])
                    most[s] = max(most[s], here[s])
        for s in range(DRAWS):
            if least[s] <= most[s]:
                low[s] = min(low[s], total[s] + least[s])
                high[s] = max(high[s], total[s] + most[s])
            total[s] += here[s]
        first = last


def scan_signs(
    const int32_t[::1] rows,         # IN  rows in the order of a feature
    const uint8_t[::1] may_cut,      # IN  whether a voter may change its vote after this row
    const uint64_t[:, ::1] words,    # IN  (w, m) random bits: 64 draws of a sign for every row
    int32_t[:, ::1] total,           # IN/OUT (w, 64) sum of the signs of all rows so far
    int32_t[:, ::1] low,             # IN/OUT (w, 64) least sum of the signs of the rows before a cut
    int32_t[:, ::1] high,            # IN/OUT (w, 64) largest one
):
    cdef Py_ssize_t w
    with nogil:
        for w in range(words.shape[0]):
            _scan_word(rows, may_cut, words[w], total[w], low[w], high[w])
