"""Style rules that no linter has: names say what they hold, and numbers have their reasons."""

from __future__ import annotations

import ast
import doctest
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import unpoison

TESTS = Path(__file__).parent
PACKAGE = Path(unpoison.__file__).parent
VAGUE_NAMES = {
    *("crowd", "drawn", "each", "found", "lean", "minority", "recent", "richer", "scratch"),
    *("seat", "seats", "trusted"),
}
"""They say what was done to a thing, or how many there are, but not what it is."""
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
# Their numbers are the settings of single measurements, and stand beside what they measure.
ROOMS_OF_MEASUREMENTS = {"bench", "demo", "experiments"}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def bound_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of all variables, attributes, parameters, functions and caught errors."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, NAMED) and node.name:
            yield node.lineno, node.name


def bound_names_with_examples(source: str) -> Iterator[tuple[int, str]]:
    """The same of a file's code and of the examples in its docstrings."""
    yield from bound_names(source)
    for example in doctest.DocTestParser().get_examples(source):
        yield from ((example.lineno + line, name) for line, name in bound_names(example.source))


def is_numeric_constant(statement: ast.stmt) -> bool:
    """Whether it assigns a number, or a collection of numbers, that is written out."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    nodes = list(ast.walk(statement.value))
    # True and False are integers too, but need no reason.
    numbers = [n for n in nodes if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    return bool(numbers) and not any(isinstance(node, ast.Call) for node in nodes)


def is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def comment_lines(source: str) -> dict[int, bool]:
    """The lines that have a comment, and whether they have nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.line.lstrip().startswith("#")
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def unexplained_constants(source: str) -> Iterator[int]:
    """Lines of module-level numeric constants without a docstring or a comment."""
    body, comments = ast.parse(source).body, comment_lines(source)
    for statement, successor in zip(body, [*body[1:], ast.Pass()], strict=True):
        if is_numeric_constant(statement):
            above = comments.get(statement.lineno - 1, False)
            if not (above or statement.end_lineno in comments or is_text(successor)):
                yield statement.lineno


def test_no_variable_has_a_name_that_does_not_say_what_it_holds() -> None:
    vague = [
        f"{path}:{line}: {name}"
        for path in [*sources(PACKAGE), *sources(TESTS)]
        for line, name in bound_names_with_examples(path.read_text(encoding="utf-8"))
        if name.lower() in VAGUE_NAMES
    ]
    assert vague == []


def test_every_numeric_constant_has_its_reason() -> None:
    unexplained = [
        f"{path}:{line}"
        for path in sources(PACKAGE)
        if path.relative_to(PACKAGE).parts[0] not in ROOMS_OF_MEASUREMENTS
        for line in unexplained_constants(path.read_text(encoding="utf-8"))
    ]
    assert unexplained == []


@pytest.mark.parametrize(
    "source",
    [
        "each = 1",
        "for each in (): pass",
        "[1 for each in ()]",
        "lambda each: 1",
        "def f(*, each): pass",
        "with open('x') as each: pass",
        "try: pass\nexcept OSError as each: pass",
        "self.each = 1",
        "def each(): pass",
        "async def each(): pass",
        "class each: pass",
        '"""A thing.\n\n>>> each = 1\n"""',
    ],
)
def test_every_way_to_bind_a_name_is_seen(source: str) -> None:
    assert "each" in {name for _, name in bound_names_with_examples(source)}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("LIMIT = 3", [1]),
        ("LIMIT: int = 3", [1]),
        ("LOW, HIGH = -1.5, 2", [1]),
        ('SIZES = {"a": (1, 2)}', [1]),
        ("LIMIT = 3  # a reason", []),
        ("# a reason\nLIMIT = 3", []),
        ('LIMIT = 3\n"""A reason."""', []),
        ("LIMIT = 3  # a reason\nOTHER = 4", [2]),
        ("# a reason\n\nLIMIT = 3", [3]),
        ('LIMIT = 3\n\n\ndef f():\n    """Of a function."""', [1]),
        ('NAME = "#3"', []),
        ("FLAG = True", []),
        ("PATTERN = compiled(3)", []),
    ],
)
def test_a_number_without_a_reason_is_seen(source: str, lines: list[int]) -> None:
    assert list(unexplained_constants(source)) == lines
