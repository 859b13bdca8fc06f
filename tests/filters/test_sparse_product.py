"""The sparse product of the EM loop, with SciPy's private kernel and without."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import _sparsetools, csr_array

from unpoison.filters.em import sparse_product
from unpoison.filters.em.sparse_product import SparseProduct, private_kernel
from unpoison.types import FloatArray

MATRICES = {
    "banded": np.triu(np.tril(np.arange(1.0, 36.0).reshape(7, 5), 1), -1),
    "an empty row": np.array([[0.0, 0.0], [0.5, 2.0]]),
    "no entries": np.zeros((3, 4)),
    "one cell": np.array([[0.25]]),
}


def product(dense: FloatArray, kernel: sparse_product.Kernel | None) -> FloatArray:
    rng = np.random.default_rng(1)
    vector, out = rng.random(len(dense.T)), rng.random(len(dense))
    SparseProduct(csr_array(dense), kernel).add(vector, out)
    return out


@pytest.mark.parametrize("name", MATRICES)
def test_the_private_kernel_and_the_public_operator_agree(name: str) -> None:
    kernel = private_kernel()
    if kernel is None:
        pytest.skip("this SciPy has no such kernel")
    dense = MATRICES[name]
    np.testing.assert_allclose(product(dense, kernel), product(dense, None), rtol=1e-15)


@pytest.mark.parametrize("name", MATRICES)
def test_the_public_operator_adds_the_dense_product(name: str) -> None:
    dense, rng = MATRICES[name], np.random.default_rng(1)
    vector, before = rng.random(len(dense.T)), rng.random(len(dense))
    np.testing.assert_allclose(product(dense, None), before + dense @ vector, rtol=1e-14)


def test_a_scipy_without_the_module_has_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sparse, "_sparsetools")
    monkeypatch.setitem(sys.modules, "scipy.sparse._sparsetools", None)
    assert private_kernel() is None


def test_a_scipy_without_the_function_has_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_sparsetools, "csr_matvec")
    assert private_kernel() is None


def other_arguments(rows: int, columns: int) -> None:
    """Takes fewer arguments."""


def other_order(*arguments: object) -> None:
    """Refuses what stands where."""
    raise ValueError(f"{len(arguments)} arguments in another order")


def other_meaning(*arguments: object) -> None:
    """Takes everything and adds nothing."""


@pytest.mark.parametrize("other", [other_arguments, other_order, other_meaning])
def test_a_kernel_that_does_something_else_is_not_used(
    other: sparse_product.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sparsetools, "csr_matvec", other)
    assert private_kernel() is None
