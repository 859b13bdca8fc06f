"""Names and percentages as the sentences of verdicts, tables and plots write them."""

from __future__ import annotations

from collections.abc import Sequence

NAMED_CATEGORIES = 3
"""The most categories that a sentence names: more than three make it hard to read."""


def compare_frequencies(
    names: tuple[str, ...], filtered: dict[str, float], unfiltered: dict[str, float]
) -> str:
    """The frequencies of the first few of some categories, without attackers and with them.

    >>> compare_frequencies(("tea",), {"tea": 0.25}, {"tea": 0.5})
    'tea has 25.0 % without them, 50.0 % with them'
    """
    return "; ".join(
        f"{name} has {100 * filtered[name]:.1f} % without them, "
        f"{100 * unfiltered[name]:.1f} % with them"
        for name in names[:NAMED_CATEGORIES]
    )


def list_names(names: tuple[str, ...]) -> str:
    """Names as an enumeration in a sentence; of many, the first few and how many more.

    >>> list_names(("tea", "milk")), list_names(("a", "b", "c", "d", "e"))
    ('tea and milk', 'a, b, c and 2 more')
    """
    if len(names) > NAMED_CATEGORIES:
        return f"{', '.join(names[:NAMED_CATEGORIES])} and {len(names) - NAMED_CATEGORIES} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def unresolved_quantiles(shares: Sequence[float]) -> str:
    """The sentence that the data cannot give these quantiles.

    >>> unresolved_quantiles([0.99])
    'The data cannot give the 99 % quantile: its interval is over a quarter of the range'
    >>> unresolved_quantiles([0.5, 0.9]).partition(":")[0]
    'The data cannot give the 50 % and 90 % quantiles'
    """
    names = [f"{share:.0%}".replace("%", " %") for share in shares]
    if len(names) == 1:
        named, spans = f"{names[0]} quantile", "its interval is"
    else:
        named, spans = f"{', '.join(names[:-1])} and {names[-1]} quantiles", "their intervals are"
    return f"The data cannot give the {named}: {spans} over a quarter of the range"
