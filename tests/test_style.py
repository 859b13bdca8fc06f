"""Style rules that no linter has: names say what they hold, and numbers have their reasons."""

from __future__ import annotations

import ast
import doctest
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import unpoison

TESTS = Path(__file__).parent
PACKAGE = Path(unpoison.__file__).parent
VAGUE_NAMES = {
    *("crowd", "drawn", "each", "found", "lean", "minority", "recent", "richer", "scratch"),
    *("seat", "seats", "some", "told", "trusted"),
}
"""They say what was done to a thing, or how many there are, but not what it is."""
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@cache  # Three rules ask for them.
def nodes_of(source: str) -> list[ast.AST]:
    """The module of a source, and all nodes of its tree."""
    return list(ast.walk(ast.parse(source)))


def bound_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of all variables, attributes, parameters, functions and caught errors."""
    for node in nodes_of(source):
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


def numbers_in(expression: ast.expr) -> set[float]:
    """Numbers that are written out; True and False are integers too, but need no reason."""
    values = [node.value for node in ast.walk(expression) if isinstance(node, ast.Constant)]
    return {
        value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    }


def assigned_numbers(statement: ast.stmt) -> set[float]:
    """The numbers of a constant: one, or a collection or the bounds of a setting."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return set()
    calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    return numbers_in(statement.value) if all(is_field(call) for call in calls) else set()


def is_field(call: ast.Call) -> bool:
    """Whether it declares a setting with its default and bounds."""
    return isinstance(call.func, ast.Name) and call.func.id == "Field"


def is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


@cache  # Two rules ask for them.
def comment_lines(source: str) -> dict[int, bool]:
    """The lines that have a comment, and whether they have nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.line.lstrip().startswith("#")
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def unexplained_constants(source: str) -> Iterator[int]:
    """Lines of numeric constants without a docstring or a comment, of modules and of classes.

    In a class 0 and 1 need no reason: most are counters, flags or neutral defaults.
    """
    nodes, comments = nodes_of(source), comment_lines(source)
    owners = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef)]
    for owner in owners:
        evident: set[float] = set() if isinstance(owner, ast.Module) else {0, 1}
        for statement, successor in zip(owner.body, [*owner.body[1:], ast.Pass()], strict=True):
            if not assigned_numbers(statement) <= evident:
                above = comments.get(statement.lineno - 1, False)
                if not (above or statement.end_lineno in comments or is_text(successor)):
                    yield statement.lineno


def unexplained_defaults(source: str) -> Iterator[int]:
    """Lines of parameters whose default is a number, other than 0 and 1, without a comment."""
    comments = comment_lines(source)
    for node in nodes_of(source):
        if isinstance(node, ast.arguments):
            defaults = [default for default in (*node.defaults, *node.kw_defaults) if default]
            for default in defaults:
                explained = default.lineno in comments or comments.get(default.lineno - 1, False)
                numeric = isinstance(default, ast.Constant | ast.UnaryOp | ast.BinOp)
                if numeric and not numbers_in(default) <= {0, 1} and not explained:
                    yield default.lineno


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
        for rule in (unexplained_constants, unexplained_defaults)
        for line in rule(path.read_text(encoding="utf-8"))
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
        ("class Limits:\n    most: int = 3", [2]),
        ('class Limits:\n    most: int = 3\n    """A reason."""', []),
        ("class Limits:\n    # A reason.\n    most = 3", []),
        ("class Limits:\n    first, step = 0, 1", []),
        ("class Limits:\n    most: int = Field(3, ge=1)", [2]),
        ("class Limits:\n    most: Annotated[int, Field(le=3)] = 0", []),
    ],
)
def test_a_number_without_a_reason_is_seen(source: str, lines: list[int]) -> None:
    assert list(unexplained_constants(source)) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(most=3): pass", [1]),
        ("def f(*, most: int = 2**3): pass", [1]),
        ("lambda least=-3: 0", [1]),
        ("def f(\n    # a reason\n    most=3,\n): pass", []),
        ("def f(most=3): pass  # a reason", []),
        ("def f(first=0, *, step=1, most=None): pass", []),
    ],
)
def test_a_default_without_a_reason_is_seen(source: str, lines: list[int]) -> None:
    assert list(unexplained_defaults(source)) == lines
