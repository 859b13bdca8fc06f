"""The joint filter's verdict: who attacks, the number without them, and what cannot be known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unpoison.estimate.estimate import WorstCase
from unpoison.estimate.finding import RULED_OUT
from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.estimate.value_format import ValueFormat
from unpoison.estimate.wording import compare_frequencies, list_names, unresolved_quantiles
from unpoison.filters.client_faults import DROPOUT
from unpoison.filters.joint import Interval
from unpoison.protocols import joint_constants, verdict_sentences
from unpoison.protocols.assembly import Assembly
from unpoison.protocols.joint_analysis import JointAnalysis

ENDS = {"right": "towards the upper end", "left": "towards the lower end"}
MODELS = {
    "nobody": "nobody attacks",
    "even": "some users send noise",
    "alike": "some users send the same kind of values in all groups",
    "own": "some users send values of another kind in each group, or in some groups alone",
}


@dataclass(frozen=True, eq=False)
class JointVerdict:
    """The sentences that tell a person what to make of the estimate.

    `interval_with_noise` is the interval if some users, too few to be noticed, send noise.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "point:C", 0.3, rng)
    >>> " % of users send values towards the upper end" in estimate(run.summary).verdict
    True
    """

    assembly: Assembly
    tiers: Sequence[JointAnalysis]
    interval: Interval | None
    interval_with_noise: Interval | None
    worst_case: WorstCase
    fit: dict[str, Any]
    finding: str

    def __str__(self) -> str:
        parts = [
            *self._client_faults(),
            self._found(),
            self._doubt(),
            self._others(),
            self._noise(),
            self._quantiles(),
            self._worst(),
        ]
        return " ".join(part for part in parts if part)

    def _client_faults(self) -> Iterator[str]:
        """The sentences about broken clients, each once."""
        faults = [fault for tier in self.tiers for fault in tier.client_faults]
        sentences = (sentence for fault in faults for sentence in (fault.sentence, fault.doubt))
        yield from dict.fromkeys(sentences)
        if any(tier.clients.fault_possible for tier in self.tiers):
            yield "Broken clients would explain the reports as well; the interval allows for them."

    @property
    def _format(self) -> ValueFormat:
        """How values are written: all by the width of the mean's interval."""
        return ValueFormat.of(self.assembly.summary.plan, self.interval)

    @property
    def _fits(self) -> bool:
        return all(tier.choice.fits for tier in self.tiers)

    @property
    def _share(self) -> str:
        return f"{100 * self.assembly.byzantine.fraction:.1f} %"

    def _found(self) -> str:
        if any(tier.outvoted for tier in self.tiers):
            return verdict_sentences.outvoted(self._share)
        if not self.assembly.byzantine.fraction > 0:
            return f"{self._nobody()}{self._number()}"
        return f"About {self._share} of users{self._groups()} send {self._where}{self._without()}"

    def _nobody(self) -> str:
        """The sentence where no attackers were found: a p-value, a limit, or a suspicion."""
        if not self._fits:
            return ""
        if self._lowest > NOBODY_ATTACKS_LEVEL and self.finding != RULED_OUT:
            return (
                f"No attackers were found (p = {self._lowest:.2g}), which does not rule them out: "
                f"up to {self._most} of users may attack. "
            )
        if self._lowest > NOBODY_ATTACKS_LEVEL:
            return f"Nobody seems to attack (p = {self._lowest:.2g}). "
        return (
            f"Somebody may attack (p = {self._lowest:.2g}), but no kind of attack explains the "
            "reports much better than none. "
        )

    @property
    def _lowest(self) -> float:
        """The p-value of the most suspicious tier, for as many tests as there are tiers."""
        return min(1.0, len(self.tiers) * min(tier.p_value for tier in self.tiers))

    @property
    def _where(self) -> str:
        if self.assembly.byzantine.categories is not None:
            return f"made-up reports of {list_names(self.assembly.byzantine.categories)}"
        return f"values {ENDS.get(self.assembly.byzantine.side, 'on both sides')}"

    def _groups(self) -> str:
        """The groups whose users attack, where others do not; not told of several tiers."""
        if len(self.tiers) > 1:
            return ""
        attacked = self.tiers[0].attacked_groups
        return verdict_sentences.of_some_groups(attacked, len(self.tiers[0].counts.groups))

    def _number(self) -> str:
        if self.interval is None:
            if self.finding == RULED_OUT:
                return "The frequencies need no filter."
            return "The frequencies are estimated without a filter."
        return f"The mean is {self._with(self.interval)}."

    def _with(self, interval: Interval) -> str:
        mean = self._format(self.assembly.answer["mean"])
        return f"{mean} (95 %: {self._format.between(interval)})"

    def _without(self) -> str:
        if self.interval is not None:
            plain = self._format(self.assembly.unfiltered.mean)
            mean = self._with(self.interval)
            return f". The mean without them is {mean}; with them it would be {plain}."
        comparison = compare_frequencies(
            self.assembly.byzantine.categories or (),
            self.assembly.answer["frequencies"],
            self.assembly.unfiltered.frequencies or {},
        )
        return f": {comparison}." if comparison else "."

    @property
    def _most(self) -> str:
        """The upper end of γ̂'s interval in the tier where it is largest."""
        return f"{100 * max(tier.intervals.attacker_share()[1] for tier in self.tiers):.1f} %"

    def _doubt(self) -> str:
        """Sentences where no model fits, or where the data cannot tell models apart."""
        if not self._fits:
            return (
                "No model explains the reports: somebody attacks in a way that this filter does "
                "not know, or reports are not what the plan says. The interval is widened; do not "
                "rely on the number."
            )
        doubts = (
            self._chance,
            self._poor_fit,
            self._one_group,
            self._other_kinds,
            self._selective,
            self._unsolved,
        )
        return " ".join(sentence for doubt in doubts for sentence in doubt())

    def _chance(self) -> Iterator[str]:
        if any(tier.may_be_chance for tier in self.tiers):
            yield f"That may be chance: honest users alone explain it too (p = {self._lowest:.2g})."

    def _poor_fit(self) -> Iterator[str]:
        if any(tier.choice.fits_poorly for tier in self.tiers):
            lowest = min(tier.fit.p_value for tier in self.tiers)
            yield (
                f"No model explains the reports well (p = {lowest:.2g}): take the interval with "
                "care."
            )

    def _one_group(self) -> Iterator[str]:
        if any(tier.choice.single_group_poisoned for tier in self.tiers):
            yield (
                "One group alone cannot tell poison from honest reports where both may be, as "
                "several could: take the interval with care."
            )

    def _other_kinds(self) -> Iterator[str]:
        kinds = dict.fromkeys(kind for tier in self.tiers for kind in tier.choice.other_kinds)
        if kinds:
            explanations = " or that ".join(MODELS[kind] for kind in kinds)
            yield (
                f"The data cannot rule out that {explanations} (at most {self._most} attackers); "
                "intervals allow for that."
            )

    def _selective(self) -> Iterator[str]:
        stopped = any(fault.kind == DROPOUT for tier in self.tiers for fault in tier.client_faults)
        if any(tier.selective for tier in self.tiers) and not stopped:
            yield (
                "Some groups have more users than their share: attackers report in these alone, or "
                "users of the others stopped reporting. If honest users did, and it depends on "
                "their values, the number is off."
            )

    def _unsolved(self) -> Iterator[str]:
        if not all(tier.converged for tier in self.tiers):
            yield "The fit did not converge: take the number with care."

    def _noise(self) -> str:
        """The sentence where noise too faint to be noticed would widen the interval much."""
        narrow, wide = self.interval, self.interval_with_noise
        if narrow is None or wide is None or not much_wider(wide, narrow):
            return ""
        return (
            f"The data cannot tell whether up to {self._most} of users send noise: if they do, the "
            f"mean is from {self._format.between(wide)}."
        )

    def _quantiles(self) -> str:
        """The sentence about quantiles of a distribution that the data cannot give."""
        distribution = self.assembly.distribution
        if distribution is None or not distribution.unresolved:
            return ""
        return f"{unresolved_quantiles(distribution.unresolved)}."

    def _others(self) -> str:
        """The sentences where the answer is the simplest explanation, and not the only one."""
        sentences = []
        if self.fit["other_means"] is not None:
            others = self._format.between(self.fit["other_means"])
            sentences.append(
                "This is the simplest explanation, not the only one: as many attackers who choose "
                f"their reports with care explain means from {others} as well."
            )
        if self.fit["fewer_attackers_explain"]:
            enough = max(tier.enough_attackers for tier in self.tiers)
            sentences.append(f"As few as {100 * enough:.1f} % attackers could explain the reports.")
        return " ".join(sentences)

    def _worst(self) -> str:
        """The sentence about the worst case: what holds whatever attackers send."""
        return verdict_sentences.worst_case(self.worst_case, self._range())

    def _range(self) -> str:
        mean_range = self.worst_case.mean_range
        if mean_range is not None:
            return f"the mean is from {self._format.between(mean_range)}"
        frequencies = self.assembly.answer.get("frequencies", {})
        return verdict_sentences.frequencies_off_by(self.worst_case, frequencies)


def much_wider(wide: Interval, narrow: Interval) -> bool:
    """Whether an interval is enough wider than another to be worth telling.

    >>> much_wider((0.0, 2.0), (0.5, 1.5)), much_wider((0.0, 2.0), (0.0, 1.9))
    (True, False)
    """
    return wide[1] - wide[0] >= joint_constants.WORTH_TELLING * (narrow[1] - narrow[0])
