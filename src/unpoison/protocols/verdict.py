"""The verdict of the paper's schemes, in a sentence."""

from __future__ import annotations

import numpy as np

from unpoison.estimate import Byzantine
from unpoison.summary import Summary

FALSE_ALARM = 0.04
"""EMF's γ̂ with nobody attacking lies up to here in the paper's Fig. γ̂ (c), at ε0 = 1/16."""


def verdict(byzantine: Byzantine, mean: float, summary: Summary, method: str) -> str:
    """What a person should take from the estimate."""
    share = f"{100 * byzantine.fraction:.1f} %"
    value = readable(mean, summary)
    ends = {"right": "the upper end", "left": "the lower end", "both": "both ends"}
    if byzantine.fraction <= FALSE_ALARM:
        return (
            f"No clear attack: {method} attributes {share} of users to attackers, which it also "
            f"does when there are none. The mean is {value}."
        )
    return (
        f"About {share} of users seem to send made-up values towards {ends[byzantine.side]}; "
        f"without them the mean is {value}."
    )


def readable(mean: float, summary: Summary) -> str:
    """A number with as many digits as its range deserves."""
    low, high = summary.plan.bounds
    width = high - low
    digits = max(0, 4 - int(np.floor(np.log10(width))))
    return f"{mean:.{digits}f}"
