"""Since when a campaign has been attacked, by the history of its estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unpoison.estimate.onset import cumulative_step_up, standard_error


def onset(history: Sequence[dict[str, Any]]) -> str | None:
    """The moment after which the share of attackers rose; None if it did not.

    It is the time of the last estimate before the rise. `history` is that of `past_estimates`.

    >>> def estimate(users: int, share: float) -> dict[str, Any]:
    ...     known = {"byzantine_fraction": share, "byzantine_interval": [share, share + 0.04]}
    ...     return {"at": f"12:0{users // 1000}", "users": users, **known}
    >>> shares = [0.0, 0.0, 0.0, 0.05, 0.08, 0.1]
    >>> onset([estimate(1000 * (i + 1), share) for i, share in enumerate(shares)])
    '12:03'
    """
    known = [row for row in history if row["byzantine_interval"] is not None]
    index = cumulative_step_up(
        [row["users"] for row in known],
        [row["byzantine_fraction"] for row in known],
        [standard_error(row["byzantine_interval"]) for row in known],
    )
    return None if index is None else str(known[index - 1]["at"])
