"""Formulas of positions, written as in the paper: "3C/4", "O", "-C/2", "1+b/2"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from unpoison.errors import InvalidParameter

TOKEN = re.compile(r"\s*(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|[A-Za-z]+|[-+*/()])")
"""A number, a name, an operator or a bracket, after any spaces."""


def evaluate(text: str, names: Mapping[str, float]) -> float:
    """The value of a formula of numbers, names, + − * / and brackets; "3C" means 3·C.

    >>> evaluate("3C/4", {"C": 8.0}), evaluate("-(1+b)/2", {"b": 1.0})
    (6.0, -1.0)
    """
    return _Parser(text, names).value()


class _Parser:
    """Recursive descent: sum of terms, term of factors, factor with a sign."""

    def __init__(self, text: str, names: Mapping[str, float]) -> None:
        self.text, self.names = text, names
        self.tokens = TOKEN.findall(text)
        self.index = 0
        # `findall` skips what is no token; then the tokens are not the whole text.
        if "".join(self.tokens) != re.sub(r"\s+", "", text) or not self.tokens:
            self._refuse()

    def value(self) -> float:
        result = self._sum()
        if self.index != len(self.tokens):
            self._refuse()
        return result

    def _sum(self) -> float:
        result = self._term()
        while self._peek() in ("+", "-"):
            result += self._term() if self._take() == "+" else -self._term()
        return result

    def _term(self) -> float:
        result = self._factor()
        while (token := self._peek()) is not None and token not in ("+", "-", ")"):
            # "2C" is a product, but "C2" or "3 4" could be meant in two ways.
            if token[0].isdigit() or token[0] == ".":
                self._refuse()
            if token == "/":
                self._take()
                divisor = self._factor()
                if divisor == 0:
                    self._refuse()
                result /= divisor
            else:
                if token == "*":
                    self._take()
                result *= self._factor()
        return result

    def _factor(self) -> float:
        token = self._take()
        if token in ("+", "-"):
            return self._factor() if token == "+" else -self._factor()
        if token == "(":
            result = self._sum()
            if self._take() != ")":
                self._refuse()
            return result
        if token in self.names:
            return self.names[token]
        try:
            return float(token)
        except ValueError:
            self._refuse()

    def _peek(self) -> str | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def _take(self) -> str:
        token = self._peek()
        if token is None:
            self._refuse()
        self.index += 1
        return token

    def _refuse(self) -> NoReturn:
        known = ", ".join(self.names)
        raise InvalidParameter("position", f"must be a formula of {known}", repr(self.text))
