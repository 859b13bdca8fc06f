"""out += matrix @ vector for sparse matrices, without SciPy's checks of its operands.

EM multiplies by the same small matrices tens of thousands of times. SciPy's compiled kernel adds
into an array that is given; its public operator allocates one and checks its operands first, which
takes longer than a product of this size. The kernel is no part of SciPy's public interface: it is
tried on a known product before its first use, and the operator is used if that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy

from unpoison.types import FloatArray

Kernel = Callable[..., None]


def private_kernel() -> Kernel | None:
    """SciPy's `csr_matvec`, if this SciPy has it and it still does what is expected.

    >>> kernel = private_kernel()
    >>> kernel is None or callable(kernel)
    True
    """
    starts, columns = np.array([0, 1], dtype=np.int32), np.array([0], dtype=np.int32)
    out = np.ones(1)
    try:
        from scipy.sparse import _sparsetools

        kernel: Kernel = _sparsetools.csr_matvec
        kernel(1, 1, starts, columns, np.array([2.0]), np.array([3.0]), out)
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    return kernel if out[0] == 7 else None


@cache
def product_kernel() -> Kernel | None:
    """`private_kernel`, tried once for each process.

    >>> product_kernel() is product_kernel()
    True
    """
    return private_kernel()


class SparseProduct:
    """A matrix to multiply by many times; without a kernel by SciPy's public operator.

    >>> out = np.array([1.0, 1.0])
    >>> matrix = scipy.sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> SparseProduct(matrix, product_kernel()).add(np.array([1.0, 1.0]), out)
    >>> out.tolist()
    [4.0, 4.0]
    """

    def __init__(self, matrix: scipy.sparse.csr_array, kernel: Kernel | None) -> None:
        self.matrix, self.kernel = matrix, kernel
        rows, columns = matrix.shape
        # Indices of half the width: more of the matrix stays in the processor's cache.
        starts, indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        self.kernel_arguments: tuple[Any, ...] = (rows, columns, starts, indices, matrix.data)

    def add(self, vector: FloatArray, out: FloatArray) -> None:
        """Add matrix @ vector to `out`; both must be contiguous and of the right length."""
        if self.kernel is None:
            out += self.matrix @ vector
        else:
            self.kernel(*self.kernel_arguments, vector, out)
