"""Numbers of the joint method that the filter itself does not need: words, doubts, defaults.

docs/method.md, Constants, says what depends on each. The filter's own are in
`filters/joint/constants.py`.
"""

from __future__ import annotations

MOST_CATEGORIES = 256
"""Categories up to which all of them are fitted together. The solver's matrices are dense: its time
grows with the cube of the number of categories. More are fitted one by one."""

CHANCE = 0.001
"""p-value of "nobody attacks" above which attackers that were found may be chance. Models are
chosen by their score, not by a test, and whoever looks at many metrics a day sees many scores."""

MARGIN = 0.05
"""What the default worst case adds to the attackers that the fit says at most: those that no fit
can see. Chosen by looking; whoever knows better gives `attackers_at_most`."""

CLEARLY_WIDER = 3.0
"""How many times as wide as the interval the worst case must be, with as many attackers as the fit
says, before the verdict calls the answer one of several. Chosen by looking: the worst case is wider
than the interval of plain poison too, because it assumes no shape."""

CLEARLY_FEWER = 0.05
"""By how much the fit's share must exceed one that explains the reports to be mentioned: what the
default worst case has room for anyway is no news."""

FAR_SIDE = 0.9
"""The share of the poison that must be on one side of the middle to call it that side. A word
only: at less than nine tenths "towards the upper end" would mislead."""

WORTH_TELLING = 1.25
"""How many times wider noise must make an interval before the verdict mentions it. Chosen by
looking: less than a quarter would not change what anybody does with the number."""
