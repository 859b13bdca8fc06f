"""The plan's unit on the axes of pictures."""

from __future__ import annotations

from dataclasses import replace

from unpoison.estimate import Byzantine, Estimate, GroupEstimate, Picture, RangeAtShare, WorstCase
from unpoison.estimate.distribution import Distribution
from unpoison.output.estimate_plot import draw_estimate
from unpoison.output.windows_plot import draw_over_time
from unpoison.summary.windows import Window

PICTURE = Picture((-1.0, 0.0, 1.0), (0.5, 0.5), (0.5, 0.4), (0.0, 0.1))
GROUP = GroupEstimate(0, 0, 1.0, 100.0, 100, 30.0, 1.0, 0.1, picture=PICTURE)
RANGES = (RangeAtShare(0.0, 20, 40, 25, 35), RangeAtShare(0.2, 10, 50, 15, 45))
ESTIMATE = Estimate(
    "joint",
    30.0,
    Byzantine(0.1, "right"),
    groups=(GROUP,),
    distribution=Distribution((0.0, 50.0, 100.0), (0.5, 0.5)),
    worst_case=WorstCase(0.2, 10.0, 50.0, 0.0, RANGES),
    unit="US$",
)


def test_axes_of_values_have_the_unit() -> None:
    reports, distribution, worst = draw_estimate(ESTIMATE).axes
    assert reports.get_xlabel() == "report"
    assert distribution.get_xlabel() == r"value, US\$"
    assert worst.get_ylabel() == r"mean, US\$"
    assert draw_over_time([(Window(0, 1), ESTIMATE)]).axes[0].get_ylabel() == r"mean, US\$"


def test_axes_without_a_unit_are_as_they_were() -> None:
    plain = replace(ESTIMATE, unit=None)
    assert draw_estimate(plain).axes[1].get_xlabel() == "value"
