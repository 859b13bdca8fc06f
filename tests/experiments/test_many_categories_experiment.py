"""The experiment on many categories: its collections, its rows, and claims that can fail."""

from __future__ import annotations

import pyarrow as pa
import pytest

from unpoison.experiments.many_categories import (
    CATEGORIES,
    POISONED,
    QUIET,
    ManyCategoriesFigure,
    drawn_cells,
)


def test_collections_are_those_of_the_seed_and_differ() -> None:
    cells = drawn_cells(quick=False)
    assert cells == drawn_cells(quick=False)
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.categories for cell in cells} == set(CATEGORIES)
    for cell in cells:
        assert (cell.gamma > 0) == (cell.kind == POISONED) == (cell.targets > 0)
    assert any(cell.attack.startswith("some-groups") for cell in cells)


def row(**changes: object) -> dict[str, object]:
    facts: dict[str, object] = {
        "categories": 300,
        "kind": POISONED,
        "over_floor": 1.0,
        "located": 1.0,
        "visible": 1.0,
        "falsely_named": 0.0,
        "covered": 0.95,
        "nobody_attacks_p_value": 0.0,
        "seconds": 0.1,
    }
    return {**facts, **changes}


def verdicts(*changes: dict[str, object]) -> list[bool]:
    rows = [row(**change) for change in changes] + [row(kind=QUIET, located=float("nan"))]
    claims = ManyCategoriesFigure().claims(pa.Table.from_pylist(rows), quick=False)
    return [claim.confirmed for claim in claims]


def test_claims_hold_where_all_is_well() -> None:
    assert all(verdicts({}))


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"over_floor": 1.6}, 0),
        ({"located": 0.9}, 1),
        ({"falsely_named": 2.0}, 2),
        ({"covered": 0.8}, 3),
        ({"seconds": 11.0}, 5),
    ],
)
def test_each_claim_can_fail(change: dict[str, object], failing: int) -> None:
    assert [at for at, holds in enumerate(verdicts(change)) if not holds] == [failing]


def test_a_quiet_collection_that_names_somebody_is_counted() -> None:
    rows = [row(), row(kind=QUIET, located=float("nan"), falsely_named=1.0)]
    claims = ManyCategoriesFigure().claims(pa.Table.from_pylist(rows), quick=False)
    assert [claim.confirmed for claim in claims][4] is False


def test_a_cell_gives_a_row_that_the_table_shows() -> None:
    cells = [cell for cell in drawn_cells(quick=True) if cell.categories == 300]
    rows = [line for cell in (cells[0], cells[-1]) for line in cell.run()]
    head, *lines = ManyCategoriesFigure().tables(pa.Table.from_pylist(rows), quick=True)[
        "Many categories"
    ]
    assert [line[0] for line in lines] == ["300, poisoned", "300, quiet"]
    assert all(len(line) == len(head) for line in lines)
