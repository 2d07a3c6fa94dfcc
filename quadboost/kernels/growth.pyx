"""Kernels of growth: a tree on coded rows, the leaf that goes on growing, and where all rows end in it.

Sums are of whole numbers, so that neither the order of rows nor their repetition changes a bit of a tree. Python
allocates, the kernels fill; arguments are marked IN / OUT. Kernels trust what they are given (the callers check).
"""
cimport numpy as cnp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from quadboost.kernels.types cimport PREFETCH, code_at, code_t

cnp.import_array()

cdef extern from "trees.h":
    int highest_bit(uint64_t) noexcept nogil

cdef enum:
    AHEAD = 12      # rows, whose codes are asked for before they are needed
    FEW_ROWS = 256  # up to which a leaf is split by its rows, without a histogram of all bins
    MIXED = 2


cdef struct split_t:
    double gain                      # by how much it decreases the sum of squared residuals; not above 0: there is none
    Py_ssize_t column
    int32_t bin                      # ordered: codes above it go right; levels: this code goes right
    bint missing_right


cdef struct leaf_t:
    Py_ssize_t first, last           # its rows, of those that the tree is grown on
    Py_ssize_t from_, until          # and of the others
    Py_ssize_t node
    Py_ssize_t histogram             # number of its histogram; -1: it has few rows, and needs none
    int32_t n_columns                # different columns on the way to it
    int8_t side                      # of monotone columns on the way: 1 where the score must rise, -1 fall, MIXED both
    split_t best


cdef struct room_t:                  # where one tree grows
    int32_t* rows                    # that the tree is grown on, by leaf
    int32_t* others                  # that fall into its leaves, by leaf
    leaf_t* leaves
    uint8_t* on_way                  # (leaves, d) columns on the way to each leaf
    int64_t* histograms              # of leaves with many rows: mass and targets in each bin of all columns
    Py_ssize_t n_histograms
    int64_t* sums                    # three times those of a bin
    int64_t* bins                    # of one column, zero
    uint64_t* bits                   # one for each of these
    int32_t* used                    # their numbers
    int32_t* scratch                 # as many as rows


cdef struct growth_t:                # what one tree is grown from
    const void* codes                # (m, d)
    int size                         # bytes of a code
    Py_ssize_t d, n_bins, n_targets  # targets in each row
    const int64_t* bin_start         # (d + 1)
    const uint8_t* is_level          # (d)
    const int8_t* sign               # (d) 1 where the score must not fall with a column, -1 where it must not rise
    const int8_t* side               # (d) the same, of columns on whose sides no leaf may rise by one and fall by another
    const int64_t* mass              # (m)
    const int64_t* target            # (m, n_targets) times mass
    const uint8_t* group             # (n_groups, d) columns that may meet in a rule
    Py_ssize_t n_groups
    int64_t least_mass               # of a leaf
    int32_t most_columns             # different ones on the way to a leaf


cdef void _add_rows(
    const code_t* codes, growth_t of, const int32_t* rows, Py_ssize_t n, int64_t* histogram, int64_t sign
) noexcept nogil:
    cdef Py_ssize_t i, f, k, n_targets = of.n_targets, width = of.n_targets + 1
    cdef const code_t* bins_of_row
    cdef const int64_t* target
    cdef int64_t* cell
    cdef int64_t mass, value
    for i in range(n):
        if i + AHEAD < n:
            PREFETCH(codes + rows[i + AHEAD] * of.d)
            PREFETCH(of.mass + rows[i + AHEAD])
            PREFETCH(of.target + rows[i + AHEAD] * n_targets)
        bins_of_row, mass = codes + rows[i] * of.d, sign * of.mass[rows[i]]
        target = of.target + rows[i] * n_targets
        if n_targets == 1:
            value = sign * target[0]
            for f in range(of.d):
                cell = histogram + 2 * (of.bin_start[f] + bins_of_row[f])
                cell[0] += mass
                cell[1] += value
        else:
            for f in range(of.d):
                cell = histogram + width * (of.bin_start[f] + bins_of_row[f])
                cell[0] += mass
                for k in range(n_targets):
                    cell[k + 1] += sign * target[k]


cdef void _count(growth_t of, const int32_t* rows, Py_ssize_t n, int64_t* histogram, int64_t sign) noexcept nogil:
    """Add rows to a histogram, or take them away."""
    if of.size == 1:
        _add_rows(<const uint8_t*> of.codes, of, rows, n, histogram, sign)
    elif of.size == 2:
        _add_rows(<const uint16_t*> of.codes, of, rows, n, histogram, sign)
    else:
        _add_rows(<const uint32_t*> of.codes, of, rows, n, histogram, sign)


cdef inline double _quality(const int64_t* sums, Py_ssize_t n_targets) noexcept nogil:
    """What the mean of some rows takes from their sum of squares: squared sums over the mass."""
    cdef double quality = 0
    cdef Py_ssize_t k
    for k in range(1, n_targets + 1):
        quality += <double> sums[k] * <double> sums[k]
    return quality / <double> sums[0]


cdef void _try(
    growth_t of, const int64_t* all, const int64_t* right, int64_t* left, double before, Py_ssize_t f, int32_t bin,
    bint missing_right, split_t* best,
) noexcept nogil:
    cdef Py_ssize_t k
    cdef double gain
    if right[0] < of.least_mass or all[0] - right[0] < of.least_mass:
        return
    for k in range(of.n_targets + 1):
        left[k] = all[k] - right[k]
    gain = _quality(left, of.n_targets) + _quality(right, of.n_targets) - before
    if gain > best.gain:
        best.gain, best.column, best.bin, best.missing_right = gain, f, bin, missing_right


cdef void _best_of_column(
    growth_t of, const int64_t* bins, Py_ssize_t n, const int32_t* used, Py_ssize_t n_used, Py_ssize_t f,
    const int64_t* all, int64_t* right, int64_t* left, double before, split_t* best,
) noexcept nogil:
    """The best split by column f, of n bins of which the last is for missing values; what beats `best` replaces it.

    `used` are the bins with rows, but for the last, in descending order.
    """
    cdef Py_ssize_t i, b, k, width = of.n_targets + 1
    cdef const int64_t* missing = bins + (n - 1) * width
    cdef int side, n_sides = 2 if missing[0] > 0 else 1
    for side in range(n_sides):
        if width == 2 and not of.is_level[f]:
            _best_of_values(of, bins, used, n_used, f, all, missing if side else NULL, before, best)
            continue
        for k in range(width):
            right[k] = missing[k] if side else 0
        for i in range(n_used):
            b = used[i]
            if of.is_level[f]:
                if b > 0:
                    for k in range(width):
                        right[k] = bins[b * width + k] + (missing[k] if side else 0)
                    _try(of, all, right, left, before, f, <int32_t> b, side, best)
            elif b > 0:
                for k in range(width):
                    right[k] += bins[b * width + k]
                _try(of, all, right, left, before, f, <int32_t> (b - 1), side, best)


cdef void _best_of_values(
    growth_t of, const int64_t* bins, const int32_t* used, Py_ssize_t n_used, Py_ssize_t f, const int64_t* all,
    const int64_t* missing, double before, split_t* best,
) noexcept nogil:
    """The same for an ordered column and one target, which is what most trees are grown to; `missing` go right, if any.

    Of a monotone column, splits alone that the score may follow.
    """
    cdef Py_ssize_t i, b
    cdef int64_t mass = missing[0] if missing else 0, target = missing[1] if missing else 0, most = all[0] - of.least_mass
    cdef double right, left, right_mass, left_mass, gain, sign = of.sign[f]
    for i in range(n_used):
        b = used[i]
        mass += bins[2 * b]
        target += bins[2 * b + 1]
        if mass > most or b == 0:
            break
        if mass >= of.least_mass:
            right, left, right_mass, left_mass = target, all[1] - target, mass, all[0] - mass
            if sign != 0 and sign * (right * left_mass - left * right_mass) < 0:
                continue
            gain = (right * right * left_mass + left * left * right_mass) / (left_mass * right_mass) - before
            if gain > best.gain:
                best.gain, best.column, best.bin, best.missing_right = gain, f, <int32_t> (b - 1), missing != NULL


cdef Py_ssize_t _used_bins(const int64_t* bins, Py_ssize_t n, Py_ssize_t width, int32_t* used) noexcept nogil:
    """Bins with rows, but for the last, in descending order; returns how many."""
    cdef Py_ssize_t b, n_used = 0
    for b in range(n - 2, -1, -1):
        used[n_used] = <int32_t> b  # without a branch: overwritten if it has none
        n_used += bins[b * width] > 0
    return n_used


cdef Py_ssize_t _few_bins(
    growth_t of, const int32_t* rows, Py_ssize_t n_rows, Py_ssize_t f, Py_ssize_t n, int64_t* bins, uint64_t* bits,
    int32_t* used,
) noexcept nogil:
    """Sums of a few rows in the bins of one column, and which those are, as `_used_bins`; `bins` and `bits` are zero."""
    cdef Py_ssize_t i, k, width = of.n_targets + 1, word, n_used = 0
    cdef int64_t code
    cdef uint64_t left
    for i in range(n_rows):
        code = code_at(of.codes, of.size, rows[i] * of.d + f)
        bits[code >> 6] |= <uint64_t> 1 << (code & 63)
        bins[code * width] += of.mass[rows[i]]
        for k in range(of.n_targets):
            bins[code * width + k + 1] += of.target[rows[i] * of.n_targets + k]
    for word in range((n - 1) >> 6, -1, -1):
        left = bits[word]
        bits[word] = 0
        while left:
            code = (word << 6) + highest_bit(left)
            left &= ~(<uint64_t> 1 << (code & 63))
            if code < n - 1:
                used[n_used] = <int32_t> code
                n_used += 1
    return n_used


cdef void _forget(const int32_t* used, Py_ssize_t n_used, Py_ssize_t n, Py_ssize_t width, int64_t* bins) noexcept nogil:
    """Make the bins zero again."""
    cdef Py_ssize_t i
    for i in range(n_used):
        memset(bins + used[i] * width, 0, width * sizeof(int64_t))
    memset(bins + (n - 1) * width, 0, width * sizeof(int64_t))


cdef void _find_split(growth_t of, room_t room, const uint8_t* on_way, leaf_t* leaf) noexcept nogil:
    """The best split of a leaf; `on_way` has the columns on the way to it."""
    cdef Py_ssize_t i, f, k, n, n_used, width = of.n_targets + 1
    cdef const int32_t* rows = room.rows + leaf.first
    cdef int64_t* all = room.sums
    cdef int64_t* bins
    cdef double before
    leaf.best.gain = 0
    if leaf.side == MIXED:  # a rule that may have no weight
        return
    memset(all, 0, width * sizeof(int64_t))
    for i in range(leaf.last - leaf.first):
        all[0] += of.mass[rows[i]]
        for k in range(of.n_targets):
            all[k + 1] += of.target[rows[i] * of.n_targets + k]
    if all[0] < 2 * of.least_mass:
        return
    before = _quality(all, of.n_targets)
    leaf.best.gain = 1e-12 * before  # less is rounding
    leaf.best.column = -1
    for f in range(of.d):
        n = of.bin_start[f + 1] - of.bin_start[f]
        if n <= 2 or not _may_split(of, on_way, leaf.n_columns, f):
            continue
        if leaf.histogram < 0:
            bins = room.bins
            n_used = _few_bins(of, rows, leaf.last - leaf.first, f, n, bins, room.bits, room.used)
        else:
            bins = room.histograms + (leaf.histogram * of.n_bins + of.bin_start[f]) * width
            n_used = _used_bins(bins, n, width, room.used)
        _best_of_column(of, bins, n, room.used, n_used, f, all, all + width, all + 2 * width, before, &leaf.best)
        if leaf.histogram < 0:
            _forget(room.used, n_used, n, width, bins)
    if leaf.best.column < 0:
        leaf.best.gain = 0


cdef bint _may_split(growth_t of, const uint8_t* on_way, int32_t n_on_way, Py_ssize_t f) noexcept nogil:
    """Whether column f may meet those on the way: there are not too many, and one group has all of them."""
    cdef Py_ssize_t g, i
    cdef bint together
    if on_way[f]:
        return True
    if n_on_way >= of.most_columns:
        return False
    for g in range(of.n_groups):
        together = of.group[g * of.d + f]
        if together and n_on_way > 0:
            for i in range(of.d):
                if on_way[i] and not of.group[g * of.d + i]:
                    together = False
                    break
        if together:
            return True
    return False


cdef inline int8_t _side(int8_t before, int8_t sign) noexcept nogil:
    """Of a leaf, after a split by a column of this sign to whose upper side it goes."""
    return before if sign == 0 or sign == before else sign if before == 0 else MIXED


cdef inline bint _goes_right(growth_t of, split_t split, int64_t code) noexcept nogil:
    if code == of.bin_start[split.column + 1] - of.bin_start[split.column] - 1:
        return split.missing_right
    return code == split.bin if of.is_level[split.column] else code > split.bin


cdef Py_ssize_t _divide(growth_t of, split_t split, int32_t* rows, Py_ssize_t n, int32_t* scratch) noexcept nogil:
    """Put the rows that go right after those that go left; returns how many go left."""
    cdef Py_ssize_t i, n_left = 0
    cdef int32_t row
    cdef bint right
    for i in range(n):  # without a branch, which nobody could foretell
        row = rows[i]
        right = _goes_right(of, split, code_at(of.codes, of.size, row * of.d + split.column))
        scratch[i - n_left] = rows[n_left] = row
        n_left += not right
    memcpy(rows + n_left, scratch, (n - n_left) * sizeof(int32_t))
    return n_left


cdef Py_ssize_t _in_bag_first(const int64_t[::1] in_bag, int32_t[::1] rows) noexcept nogil:
    """Rows in the bag, then the others; returns how many are in it."""
    cdef Py_ssize_t r, m = rows.shape[0], n = 0, n_others = 0
    for r in range(m):
        n += in_bag[r] > 0
    for r in range(m):
        if in_bag[r] > 0:
            rows[r - n_others] = <int32_t> r
        else:
            rows[n + n_others] = <int32_t> r
            n_others += 1
    return n


cdef void _write_node(
    Py_ssize_t leaf, const int32_t* rows, Py_ssize_t first, Py_ssize_t last, uint32_t[::1] node
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(first, last):
        node[rows[i]] = <uint32_t> leaf


def grow(
    cnp.ndarray codes,               # IN  (m, d), by rows, of one, two or four bytes
    const int64_t[::1] bin_start,    # IN  (d + 1)
    const uint8_t[::1] is_level,     # IN  (d)
    const int8_t[::1] sign,          # IN  (d) how the score must change with a column; 0: in any way
    const int8_t[::1] side,          # IN  (d) the same, where a leaf is not split that must rise by one and fall by another
    const int64_t[::1] mass,         # IN  (m) weight of each row
    const int64_t[:, ::1] target,    # IN  (m, n_targets) times that weight
    const int64_t[::1] in_bag,       # IN  (m) above zero: a row to grow on
    int32_t[::1] rows,               # scratch (m)
    const uint8_t[:, ::1] group,     # IN  (n_groups, d) columns that may meet in a rule
    int most_columns,                # different ones in a rule
    int64_t least_mass,              # of a leaf
    int max_leaves,
    int32_t[::1] column,             # OUT (2 max_leaves - 1) what a node is split by, -1 for a leaf
    int32_t[::1] bin,                # OUT ordered: codes above it go right; levels: this code goes right
    uint8_t[::1] missing_right,      # OUT
    int32_t[:, ::1] child,           # OUT (2 max_leaves - 1, 2) left and right
    uint32_t[::1] node,              # OUT (m) the node, a leaf, that each row falls into
):
    """Grow one tree; returns the number of its nodes, numbered as they were made."""
    cdef growth_t of
    cdef room_t room
    cdef Py_ssize_t n_nodes = 1, n_leaves = 1, i, best, f, n_most = 0, width = target.shape[1] + 1
    cdef Py_ssize_t n_rows = _in_bag_first(in_bag, rows)
    cdef Py_ssize_t n_histograms = max(1, min(max_leaves, n_rows // FEW_ROWS + 1))
    of.codes, of.size, of.d = cnp.PyArray_DATA(codes), cnp.PyArray_ITEMSIZE(codes), codes.shape[1]
    of.n_bins, of.n_targets, of.bin_start = bin_start[of.d], target.shape[1], &bin_start[0]
    of.is_level, of.sign, of.side, of.mass = &is_level[0], &sign[0], &side[0], &mass[0]
    of.target, of.group, of.n_groups = &target[0, 0], &group[0, 0], group.shape[0]
    of.least_mass, of.most_columns = least_mass, most_columns
    for f in range(of.d):
        n_most = max(n_most, bin_start[f + 1] - bin_start[f])
    room.rows, room.others = &rows[0], &rows[0] + n_rows
    room.leaves = <leaf_t*> calloc(max_leaves, sizeof(leaf_t))
    room.on_way = <uint8_t*> calloc(max_leaves * of.d, 1)
    room.histograms = <int64_t*> calloc(n_histograms * of.n_bins * width, sizeof(int64_t))
    room.sums = <int64_t*> calloc(3 * width, sizeof(int64_t))
    room.bins = <int64_t*> calloc(n_most * width, sizeof(int64_t))
    room.bits = <uint64_t*> calloc(n_most // 64 + 1, sizeof(uint64_t))
    room.used = <int32_t*> calloc(n_most + 1, sizeof(int32_t))
    room.scratch = <int32_t*> calloc(rows.shape[0] + 1, sizeof(int32_t))
    room.n_histograms = 0
    try:
        if (room.leaves == NULL or room.on_way == NULL or room.histograms == NULL or room.sums == NULL
                or room.bins == NULL or room.bits == NULL or room.used == NULL or room.scratch == NULL):
            raise MemoryError
        with nogil:
            column[0], missing_right[0] = -1, 0
            room.leaves[0].last, room.leaves[0].until, room.leaves[0].histogram = n_rows, rows.shape[0] - n_rows, -1
            if n_rows > FEW_ROWS:
                room.leaves[0].histogram = 0
                room.n_histograms = 1
                _count(of, room.rows, n_rows, room.histograms, 1)
            _find_split(of, room, room.on_way, &room.leaves[0])
            while n_leaves < max_leaves:
                best = 0
                for i in range(1, n_leaves):
                    if room.leaves[i].best.gain > room.leaves[best].best.gain:  # strictly: of equal leaves the first
                        best = i
                if not room.leaves[best].best.gain > 0:
                    break
                _split(of, &room, best, n_leaves)
                i = room.leaves[best].node
                column[i], bin[i] = <int32_t> room.leaves[n_leaves].best.column, room.leaves[n_leaves].best.bin
                missing_right[i] = room.leaves[n_leaves].best.missing_right
                child[i, 0], child[i, 1] = <int32_t> n_nodes, <int32_t> (n_nodes + 1)
                room.leaves[best].node, room.leaves[n_leaves].node = n_nodes, n_nodes + 1
                column[n_nodes] = column[n_nodes + 1] = -1
                n_nodes += 2
                _find_split(of, room, room.on_way + best * of.d, &room.leaves[best])
                _find_split(of, room, room.on_way + n_leaves * of.d, &room.leaves[n_leaves])
                n_leaves += 1
            for i in range(n_leaves):
                _write_node(room.leaves[i].node, room.rows, room.leaves[i].first, room.leaves[i].last, node)
                _write_node(room.leaves[i].node, room.others, room.leaves[i].from_, room.leaves[i].until, node)
    finally:
        free(room.leaves)
        free(room.on_way)
        free(room.histograms)
        free(room.sums)
        free(room.bins)
        free(room.bits)
        free(room.used)
        free(room.scratch)
    return n_nodes


cdef void _split(growth_t of, room_t* room, Py_ssize_t here, Py_ssize_t new) noexcept nogil:
    """Split leaf `here` by its best split: it keeps the left rows, leaf `new` gets the others, and the split.

    The histogram of a leaf of many rows goes to the larger side, less the rows of the other; that one has its own, if
    it has many rows too.
    """
    cdef Py_ssize_t first = room.leaves[here].first, last = room.leaves[here].last, i
    cdef Py_ssize_t n = of.n_bins * (of.n_targets + 1), large = here, small = new
    cdef split_t split = room.leaves[here].best
    cdef Py_ssize_t middle = first + _divide(of, split, room.rows + first, last - first, room.scratch)
    cdef Py_ssize_t histogram = room.leaves[here].histogram
    cdef int64_t* all
    cdef int64_t* smaller
    room.leaves[new].first, room.leaves[new].last, room.leaves[here].last = middle, last, middle
    i = room.leaves[here].from_
    i += _divide(of, split, room.others + i, room.leaves[here].until - i, room.scratch)
    room.leaves[new].from_, room.leaves[new].until, room.leaves[here].until = i, room.leaves[here].until, i
    room.leaves[new].best = split
    if middle - first < last - middle:
        large, small = new, here
    room.leaves[small].histogram = -1
    room.leaves[large].histogram = histogram if room.leaves[large].last - room.leaves[large].first > FEW_ROWS else -1
    if room.leaves[large].histogram >= 0:
        all = room.histograms + histogram * n
        first, last = room.leaves[small].first, room.leaves[small].last
        if last - first > FEW_ROWS:
            smaller = room.histograms + room.n_histograms * n
            room.leaves[small].histogram = room.n_histograms
            room.n_histograms += 1
            _count(of, room.rows + first, last - first, smaller, 1)
            for i in range(n):
                all[i] -= smaller[i]
        else:
            _count(of, room.rows + first, last - first, all, -1)
    room.leaves[new].side = _side(room.leaves[here].side, of.side[split.column])
    room.leaves[here].side = _side(room.leaves[here].side, -of.side[split.column])
    memcpy(room.on_way + new * of.d, room.on_way + here * of.d, of.d)
    room.leaves[new].n_columns = room.leaves[here].n_columns
    if not room.on_way[here * of.d + split.column]:
        room.leaves[new].n_columns += 1
        room.leaves[here].n_columns += 1
        room.on_way[here * of.d + split.column] = room.on_way[new * of.d + split.column] = 1


# ---------------------------------------------------------------------------------------------
# A tree as it was grown
# ---------------------------------------------------------------------------------------------

def in_preorder(
    const int32_t[::1] column, const int32_t[:, ::1] child,   # IN  as `grow` wrote them
    int32_t[::1] order,              # OUT (n_nodes) the nodes in preorder
    int32_t[::1] waiting,            # scratch (n_nodes)
):
    cdef Py_ssize_t i, n_waiting = 1
    cdef int32_t node
    waiting[0] = 0
    for i in range(order.shape[0]):
        n_waiting -= 1
        node = waiting[n_waiting]
        order[i] = node
        if column[node] >= 0:
            waiting[n_waiting], waiting[n_waiting + 1] = child[node, 1], child[node, 0]
            n_waiting += 2
