"""out += matrix @ vector, without the checks that cost more than the product itself.

EM multiplies by the same small matrices tens of thousands of times. SciPy's own kernel adds into an
array that is given; its public operator allocates one and looks at its operands first, which takes
longer than a product of this size. The kernel is not part of SciPy's public interface, so where it
is missing the operator is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from unpoison.types import FloatArray

_kernel: Any
try:
    from scipy.sparse import _sparsetools

    _kernel = _sparsetools.csr_matvec
except (ImportError, AttributeError):  # pragma: no cover - a SciPy that has moved it
    _kernel = None


class Product:
    """A matrix to multiply by many times; indices are kept short, for the cache's sake.

    >>> out = np.array([1.0, 1.0])
    >>> Product(csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))).add(np.array([1.0, 1.0]), out)
    >>> out.tolist()
    [4.0, 4.0]
    """

    def __init__(self, matrix: csr_array) -> None:
        self.matrix = matrix
        rows, columns = matrix.shape
        starts, places = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        self.parts: tuple[Any, ...] = (rows, columns, starts, places, matrix.data)

    def add(self, vector: FloatArray, out: FloatArray) -> None:
        """Add matrix @ vector to `out`; both must be contiguous and of the right length."""
        if _kernel is None:
            out += self.matrix @ vector
        else:
            _kernel(*self.parts, vector, out)
