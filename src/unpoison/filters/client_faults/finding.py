"""A fault of clients that was recognised: its kind, its groups, and a sentence for the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class ClientFault:
    """A fault of the clients of some groups, and the share of the reports that have it.

    `detail` are further numbers of the kind of fault, such as the spacing of rounded reports.
    `doubt` is a further sentence where the estimate may be off in spite of it.

    >>> fault = ClientFault("rounding", (0, 1), 0.25, "Reports are rounded.", {"spacing": 0.1})
    >>> fault.named()
    {'kind': 'rounding', 'groups': [0, 1], 'share': 0.25, 'spacing': 0.1}
    """

    kind: str
    groups: tuple[int, ...]
    share: float
    sentence: str
    detail: dict[str, Any] = field(default_factory=dict)
    doubt: str = ""

    def named(self) -> dict[str, Any]:
        """The entry of the Estimate's `fit.client_faults`."""
        return {
            "kind": self.kind,
            "groups": list(self.groups),
            "share": self.share,
            **self.detail,
        }


def share_of_reports(share: float) -> str:
    """The share of reports that a fault concerns, as the subject of a sentence.

    >>> share_of_reports(0.25), share_of_reports(0.999)
    ('About 25 % of reports', 'Reports')
    """
    percent = f"{100 * share:.2g}"
    return "Reports" if percent == "1e+02" else f"About {percent} % of reports"


def in_groups(groups: tuple[int, ...], all_groups: int) -> str:
    """The groups of a fault, as a sentence names them after its subject; all groups are not named.

    >>> in_groups((1, 3), 5), in_groups((0, 1), 2)
    (' of groups 1 and 3', '')
    """
    if len(groups) == all_groups:
        return ""
    names = [str(group) for group in groups]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f" of group{'s' if len(names) > 1 else ''} {listed}"
