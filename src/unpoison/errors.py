"""The package's exceptions, as one tree.

::

    UnpoisonError
    ├── InvalidParameter    an option, argument or plan key breaks its rule
    ├── InvalidRow          a row is not one the plan allows
    │   ├── InvalidReport   … a report
    │   └── InvalidValue    … a raw value (which the message does not repeat)
    ├── InvalidFile         a file is truncated, foreign or lacks a column
    ├── BadFiles            several files are, or have invalid rows
    ├── IncompatibleSummaries  summaries of different plans were merged
    ├── NotEnoughData       a group is empty, or too small to say anything
    ├── BudgetExceeded      a report would spend more than a device allows
    ├── CollectorNotTrusted  a collector asks for what a device must not do, or answers nonsense
    ├── CollectorRefused    a collector answered with an error
    ├── IssuerNotTrusted    an issuer's signature or directory is not what it should be
    ├── IssuerRefused       an issuer of tokens answered with an error
    ├── CollectorUnreachable  a collector did not answer, however often it was asked
    └── MissingExtra        an optional dependency is not installed

    ConvergenceWarning      an estimate stopped at its iteration bound
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


class UnpoisonError(Exception):
    """The root of all errors that this package raises on purpose."""


class InvalidParameter(UnpoisonError, ValueError):
    """A parameter breaks its rule; the message names it, the rule and what was received.

    >>> raise InvalidParameter("epsilon", "must be positive", -1)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: epsilon must be positive; received -1
    """

    def __init__(self, parameter: str, rule: str, received: object) -> None:
        super().__init__(parameter, rule, received)
        self.parameter = parameter
        self.rule = rule
        self.received = received

    def __str__(self) -> str:
        return f"{self.parameter} {self.rule}; received {self.received}"


class InvalidRow(UnpoisonError, ValueError):
    """A row that the plan does not allow, with its number (from 1) and, once known, its file."""

    def __init__(self, rule: str, received: object, row: int, source: str = "") -> None:
        super().__init__(rule, received, row, source)
        self.rule = rule
        self.received = received
        self.row = row
        self.source = source

    def __str__(self) -> str:
        place = f"{self.source}: row {self.row}" if self.source else f"row {self.row}"
        return f"{place}: {self.rule}; received {self.received}"

    def at(self, source: str, rows_before: int, received: object = None) -> InvalidRow:
        """A copy of the error with its file, its row there, and what the file has in that row."""
        shown = self.received if received is None else received
        return type(self)(self.rule, shown, self.row + rows_before, source)


class InvalidReport(InvalidRow):
    """A report outside its group's domain, or of no group of the plan."""


class InvalidValue(InvalidRow):
    """A raw value that the plan does not take; the value itself is never repeated."""


class InvalidFile(UnpoisonError, ValueError):
    """A file that cannot be read as what it should be."""

    def __init__(self, path: object, fault: str) -> None:
        super().__init__(path, fault)
        self.path = path
        self.fault = fault

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}"


class BadFiles(UnpoisonError, ValueError):
    """Several files that cannot be counted, each with a sentence that says why.

    >>> str(BadFiles(["a.csv: is empty", "b.csv: is empty"], 9))
    '2 of 9 files cannot be counted: a.csv: is empty | b.csv: is empty'
    """

    def __init__(self, faults: Sequence[str], files: int) -> None:
        super().__init__(faults, files)
        self.faults = faults
        self.files = files

    def __str__(self) -> str:
        shown = " | ".join(self.faults)
        return f"{len(self.faults)} of {self.files} files cannot be counted: {shown}"


class IncompatibleSummaries(UnpoisonError, ValueError):
    """Summaries of different plans cannot be added."""


class NotEnoughData(UnpoisonError, ValueError):
    """Too few reports for any estimate."""


class BudgetExceeded(UnpoisonError, ValueError):
    """A report would spend more than a device allows in a campaign or over its life.

    >>> str(BudgetExceeded("lifetime_epsilon", Fraction(1, 2), Fraction(1, 4)))
    'lifetime_epsilon leaves epsilon 0.25, and the report needs 0.5'
    """

    def __init__(self, limit: str, needed: Fraction, left: Fraction) -> None:
        super().__init__(limit, needed, left)
        self.limit = limit
        self.needed = needed
        self.left = left

    def __str__(self) -> str:
        left, needed = float(self.left), float(self.needed)
        return f"{self.limit} leaves epsilon {left:g}, and the report needs {needed:g}"


class CollectorNotTrusted(UnpoisonError, ValueError):
    """A collector asks for what a device must not do, or its answer makes no sense."""


class CollectorRefused(UnpoisonError, ValueError):
    """A collector answered with an error, which has a code and a message.

    >>> str(CollectorRefused(409, "invite-used", "Another device has used this invite."))
    'the collector refused (409 invite-used): Another device has used this invite.'
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"the collector refused ({self.status} {self.code}): {self.message}"


class IssuerNotTrusted(UnpoisonError, ValueError):
    """An issuer signs with another key than it should, or its answer makes no sense."""


class IssuerRefused(UnpoisonError, ValueError):
    """An issuer of tokens answered with an error, which may have a code.

    >>> str(IssuerRefused(403, "no-tokens-left"))
    'the issuer refused (403 no-tokens-left)'
    """

    def __init__(self, status: int, code: str) -> None:
        super().__init__(status, code)
        self.status = status
        self.code = code

    def __str__(self) -> str:
        return f"the issuer refused ({self.status} {self.code})"


class CollectorUnreachable(UnpoisonError, ConnectionError):
    """A collector did not answer, however often it was asked; all can be tried again later."""

    def __init__(self, collector: str, attempts: int, fault: str) -> None:
        super().__init__(collector, attempts, fault)
        self.collector = collector
        self.attempts = attempts
        self.fault = fault

    def __str__(self) -> str:
        times = "attempt" if self.attempts == 1 else "attempts"
        return f"{self.collector}: no answer in {self.attempts} {times} ({self.fault})"


class MissingExtra(UnpoisonError, ImportError):
    """An optional part is not installed; the message says how to get it."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(purpose, extra)
        self.purpose = purpose
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.purpose} needs an extra: pip install 'unpoison[{self.extra}]'"


class ConvergenceWarning(UserWarning):
    """An iteration stopped at its bound before its criterion was met."""
