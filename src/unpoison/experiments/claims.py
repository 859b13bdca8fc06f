"""Claims that experiments check, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A statement of the paper or an aim of ours, whether a run confirms it, and the evidence.

    >>> Claim("γ̂ tends to γ as ε tends to 0", confirmed=True, evidence="0.18 to 0.006").confirmed
    True
    """

    text: str
    confirmed: bool
    evidence: str


PAPER_CLAIM, OWN_AIM = "the paper says", "the aim"
"""Heads of the column of claims, in tables of the paper's and of our own."""


def claims_table(claims: Sequence[Claim], head: str = PAPER_CLAIM) -> list[list[str]]:
    """Claims as rows of text, the head first.

    >>> claims_table([Claim("γ̂ tends to γ", confirmed=False, evidence="0.2 at ε = 1/16")])[1]
    ['γ̂ tends to γ', 'not confirmed', '0.2 at ε = 1/16']
    """
    words = {True: "confirmed", False: "not confirmed"}
    rows = [[claim.text, words[claim.confirmed], claim.evidence] for claim in claims]
    return [[head, "this run", "by"], *rows]
