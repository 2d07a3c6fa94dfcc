"""Gram columns in memory, where rounds find them without the interpreter.

Where only Python can help (rows are not sorted yet, or there is no memory left) rounds come back to it.
"""
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uintptr_t

from quadboost.kernels.types cimport count_t

import numpy as np

cnp.import_array()

cdef extern from "compiler.h":
    uintptr_t LOAD(const uintptr_t*) noexcept nogil
    void STORE(uintptr_t*, uintptr_t) noexcept nogil


cdef class Store:
    """The Gram columns of one set of rows that are in memory.

    One run of rounds has it for itself. Where it is shared, several threads look up columns and make them, each its own;
    `with store` where Python sees to it: then no other makes one.
    """

    def __init__(self, Maker maker, Py_ssize_t n_voters, bint has_counts):
        """`has_counts`: columns are of int32, else of float64."""
        self.maker, self.has_counts, self.is_shared = maker, has_counts, False
        self.address, self.stamp = np.zeros(n_voters, dtype=np.uintp), np.zeros(n_voters, dtype=np.int64)
        self._address, self._stamp, self._clock = self.address, self.stamp, 0
        self.n_free, self.work, self._n_makers = 0, 0, 0
        self._free = np.zeros(0, dtype=np.uintp)
        self._pieces = []

    def __enter__(self):
        self._turn.acquire()
        self._mutex.acquire()
        while self._n_makers > 0:  # they end soon, and none begins another
            self._mutex.release()
            self._mutex.acquire()
        return self

    def __exit__(self, *_):
        self._mutex.release()
        self._turn.release()

    def add_room(self, cnp.ndarray piece):
        """Take a piece of memory: of shape (columns, voters)."""
        cdef Py_ssize_t i, bytes_each = piece.strides[0]
        cdef uintptr_t first = <uintptr_t> cnp.PyArray_DATA(piece)
        self._pieces.append(piece)
        free = np.zeros(len(self._free) + len(piece), dtype=np.uintp)
        free[: self.n_free] = np.asarray(self._free)[: self.n_free]
        self._free = free
        for i in range(piece.shape[0] - 1, -1, -1):
            self._free[self.n_free] = first + i * bytes_each
            self.n_free += 1

    def drop(self, const int64_t[::1] voters):
        """Forget the columns of some voters: there is room for others."""
        cdef Py_ssize_t i
        for i in range(voters.shape[0]):
            self._free[self.n_free] = self._address[voters[i]]
            self.n_free += 1
            self._address[voters[i]] = 0

    def find(self, Py_ssize_t voter) -> bool:
        """Whether the column of a voter is in memory, or could be made now."""
        if self._address[voter] == 0:
            with nogil:
                self._make(voter)
        return self._address[voter] != 0 and self.fetch(voter) != NULL

    def room(self):
        """An array for the next column, to be written and then kept."""
        return self._view(self._free[self.n_free - 1])

    def keep(self, Py_ssize_t voter):
        """Take what was written to `room` for the column of a voter."""
        self.n_free -= 1
        STORE(&self._address[voter], self._free[self.n_free])

    def column(self, Py_ssize_t voter):
        """The column of a voter that is in memory, not a copy."""
        return self._view(self._address[voter])

    cdef object _view(self, uintptr_t address):
        cdef cnp.npy_intp n = self._address.shape[0]
        cdef int kind = cnp.NPY_INT32 if self.has_counts else cnp.NPY_FLOAT64
        cdef cnp.ndarray view = cnp.PyArray_SimpleNewFromData(1, &n, kind, <void*> address)
        cnp.set_array_base(view, self)
        return view

    cdef bint _make(self, Py_ssize_t voter) noexcept nogil:
        cdef uintptr_t address
        if self.n_free == 0:
            return False
        address = self._free[self.n_free - 1]
        if not self.maker.write(voter, self, <void*> address):
            return False
        self.n_free -= 1
        STORE(&self._address[voter], address)
        return True

    cdef void _make_beside_others(self, Py_ssize_t voter) noexcept nogil:
        """The same while other threads make columns; of two for the same voter the first stays."""
        cdef uintptr_t address
        cdef bint is_made
        with self._turn, self._mutex:
            if self.n_free == 0 or self._address[voter] != 0:
                return
            self.n_free -= 1
            self._n_makers += 1
            address = self._free[self.n_free]
        is_made = self.maker.write(voter, self, <void*> address)
        with self._mutex:
            self._n_makers -= 1
            if is_made and self._address[voter] == 0:
                STORE(&self._address[voter], address)
            else:
                self._free[self.n_free] = address
                self.n_free += 1

    cdef const void* fetch(self, Py_ssize_t voter) noexcept nogil:
        """The column of a voter; NULL if Python must see to it first."""
        if self.is_shared:
            if LOAD(&self._address[voter]) == 0:
                self._make_beside_others(voter)
            return <const void*> LOAD(&self._address[voter])
        if self._address[voter] == 0 and not self._make(voter):
            return NULL
        self._clock += 1
        self._stamp[voter] = self._clock
        return <const void*> self._address[voter]


cdef class Maker:
    """Writes Gram columns. This one leaves it to Python."""

    cdef bint write(self, Py_ssize_t voter, Store store, void* out) noexcept nogil:
        """Write the column of a voter, with the help of those in the store; false if Python must see to it."""
        return False


cdef class DifferenceMaker(Maker):
    """Columns of the rows of one store that are not rows of another."""
    cdef Store _all, _part

    def __init__(self, Store all, Store part):
        self._all, self._part = all, part

    cdef bint write(self, Py_ssize_t voter, Store store, void* out) noexcept nogil:
        cdef const void* whole = self._all.fetch(voter)
        cdef const void* part = NULL if whole == NULL else self._part.fetch(voter)
        if part == NULL:
            return False
        if store.has_counts:
            _subtract(<const int32_t*> whole, <const int32_t*> part, <int32_t*> out, store._address.shape[0])
        else:
            _subtract(<const double*> whole, <const double*> part, <double*> out, store._address.shape[0])
        store.work += self._part.work
        self._part.work = 0
        return True


cdef void _subtract(const count_t* whole, const count_t* part, count_t* out, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = whole[i] - part[i]
