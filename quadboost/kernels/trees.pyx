"""Kernels of trees in preorder: what is below a node, and the leaves that coded rows fall into."""
cimport numpy as cnp
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from quadboost.kernels.types cimport code_at

cnp.import_array()

cdef extern from "trees.h":
    void reach(
        const uint32_t*, const int64_t*, const int32_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t, uint32_t*
    ) noexcept nogil
    int leaf_left(const uint32_t*, Py_ssize_t) noexcept nogil

# ---------------------------------------------------------------------------------------------
# Trees in preorder
# ---------------------------------------------------------------------------------------------

def find_right(
    const int64_t[::1] start,        # IN  (n_trees + 1) where the nodes of each tree begin, from 0 on
    const int32_t[::1] feature,      # IN  (n) negative for a leaf
    int32_t[::1] end,                # OUT (n) one past the last node at or below each
    int32_t[::1] right,              # OUT (n) the node to the right; -1 for a leaf
):
    """Returns the first tree, from the last on, that is not one in preorder; -1 if all are."""
    cdef Py_ssize_t t, i, last
    for t in range(start.shape[0] - 2, -1, -1):
        last = start[t + 1]
        if last <= start[t]:
            return t
        for i in range(last - 1, start[t] - 1, -1):
            if feature[i] < 0:
                end[i], right[i] = <int32_t> (i + 1), -1
            elif i + 1 >= last or end[i + 1] >= last:
                return t
            else:
                right[i] = end[i + 1]
                end[i] = end[right[i]]
        if end[start[t]] != last:
            return t
    return -1


cdef inline void _clear(uint32_t* words, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t leaf
    for leaf in range(first, last):
        words[leaf // 32] &= ~(<uint32_t> 1 << (leaf % 32))


cdef inline void _join(uint32_t* words, const uint32_t* others, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t w
    for w in range(n):
        words[w] &= others[w]


def fill_reach(
    const int64_t[::1] node_slot,    # IN  (n) the feature of each inner node, as numbered in the table; ascending
    const int64_t[::1] cut,          # IN  (n) bins above it go right; of levels: this bin; ascending for each feature
    const uint8_t[::1] is_level, const uint8_t[::1] missing_right,   # IN  (n)
    const int64_t[::1] word,         # IN  (n) where the words of its tree begin
    const int64_t[::1] first,        # IN  (n) its leaves: the first, ...
    const int64_t[::1] middle,       # IN  (n) ... the first to the right, ...
    const int64_t[::1] last,         # IN  (n) ... and one past the last
    const int64_t[::1] start,        # IN  (slots + 1) where the bins of each feature begin
    uint32_t[:, ::1] table,          # IN/OUT all bits set; then those of leaves out of reach are not
    uint32_t[::1] left,              # scratch (words of all trees)
):
    """One way through the bins of each feature up, and one down: each node is looked at once, not once for every bin."""
    cdef Py_ssize_t n = node_slot.shape[0], n_words = table.shape[1], i = 0, j, end, b, missing
    with nogil:
        while i < n:
            end = i
            missing = start[node_slot[i] + 1] - 1
            while end < n and node_slot[end] == node_slot[i]:
                if missing_right[end]:
                    _clear(&table[missing, word[end]], first[end], middle[end])
                else:
                    _clear(&table[missing, word[end]], middle[end], last[end])
                end += 1
            memset(&left[0], 0xff, n_words * sizeof(uint32_t))  # what is within reach above the cuts up to here
            j = i
            for b in range(start[node_slot[i]], missing):
                _join(&table[b, 0], &left[0], n_words)
                while j < end and start[node_slot[i]] + cut[j] == b:
                    if is_level[j]:
                        _clear(&table[b, word[j]], first[j], middle[j])
                        _clear(&left[word[j]], middle[j], last[j])
                    else:
                        _clear(&left[word[j]], first[j], middle[j])
                    j += 1
            memset(&left[0], 0xff, n_words * sizeof(uint32_t))  # and below those from here on
            j = end - 1
            for b in range(missing - 1, start[node_slot[i]] - 1, -1):
                if is_level[i]:
                    _join(&table[b, 0], &left[0], n_words)
                while j >= i and start[node_slot[i]] + cut[j] == b:
                    _clear(&left[word[j]], middle[j], last[j])
                    j -= 1
                if not is_level[i]:
                    _join(&table[b, 0], &left[0], n_words)
            i = end


# ---------------------------------------------------------------------------------------------
# The leaves of coded rows
# ---------------------------------------------------------------------------------------------

def leaves_of_codes(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    const int64_t[::1] column,       # IN  (n) columns that trees ask for
    const uint32_t[:, ::1] table,    # IN  (bins of these columns, words of all trees) leaves within reach
    const int64_t[::1] start,        # IN  (n) where the bins of each begin there
    Py_ssize_t words_each,           # words of a tree
    uint8_t[:, ::1] out,             # OUT (m, n_trees) number of the leaf of each row in each tree, from 1 on
    int32_t[:, ::1] bins,            # scratch (n_threads, n)
    uint32_t[:, ::1] left,           # scratch (n_threads, words of all trees)
):
    cdef Py_ssize_t m = codes.shape[0], d = codes.shape[1], n = column.shape[0], n_trees = out.shape[1], t, r, f, i
    cdef const void* data = cnp.PyArray_DATA(codes)
    cdef int size = cnp.PyArray_ITEMSIZE(codes), n_threads = <int> bins.shape[0]
    for t in prange(n_threads, nogil=True, schedule="static", num_threads=n_threads):
        for r in range(t * m // n_threads, (t + 1) * m // n_threads):
            for f in range(n):
                bins[t, f] = code_at(data, size, r * d + column[f])
            reach(&table[0, 0], &start[0], &bins[t, 0], 1, n, n_trees * words_each, &left[t, 0])
            for i in range(n_trees):
                out[r, i] = <uint8_t> (1 + leaf_left(&left[t, i * words_each], words_each))
