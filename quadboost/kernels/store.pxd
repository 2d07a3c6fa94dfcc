"""See store.pyx."""

cimport cython
from libc.stdint cimport int64_t, uintptr_t


cdef class Maker:
    cdef bint write(self, Py_ssize_t voter, Store store, void* out) noexcept nogil


cdef class Store:
    cdef readonly Maker maker
    cdef readonly object address     # uintp array (voters): where each voter's column is, 0 where it is not in memory
    cdef readonly object stamp       # int64 array (voters): when each column was last used
    cdef readonly bint has_counts
    cdef readonly Py_ssize_t n_free  # columns for which there is room
    cdef public bint is_shared
    cdef public int64_t work         # counts since the last look
    cdef uintptr_t[::1] _address, _free
    cdef int64_t[::1] _stamp
    cdef int64_t _clock
    cdef list _pieces
    cdef Py_ssize_t _n_makers        # threads that make a column of a shared store
    cdef cython.pymutex _mutex       # of what a shared store knows, for a moment
    cdef cython.pymutex _turn        # to begin a column there, or to have it alone
    cdef object _view(self, uintptr_t address)
    cdef bint _make(self, Py_ssize_t voter) noexcept nogil
    cdef void _make_beside_others(self, Py_ssize_t voter) noexcept nogil
    cdef const void* fetch(self, Py_ssize_t voter) noexcept nogil
