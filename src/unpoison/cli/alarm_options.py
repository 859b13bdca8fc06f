"""Options of the rules that raise an alarm, for campaigns and for windows of time."""

from __future__ import annotations

from typing import Annotated

from unpoison.cli.options import number_option, option

AttackersAbove = Annotated[
    float | None, number_option("Alarm if the share of attackers is larger, such as 0.05.")
]
PBelow = Annotated[
    float | None, number_option('Alarm if the p-value of "nobody attacks" is smaller.')
]
Doubt = Annotated[bool, option("Alarm if the estimate doubts itself.", "--doubt")]
BalanceBelow = Annotated[
    float | None, number_option('Alarm if the p-value of "all groups report alike" is smaller.')
]
SilentMinutes = Annotated[
    float | None, number_option("Alarm if nobody has reported for so many minutes.")
]
