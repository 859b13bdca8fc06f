"""Lists of registered names in help texts, looked up when the help of a command is shown.

A help text has a placeholder such as `{datasets}` where the names go. `CommandWithNames` fills it
in when `unpoison COMMAND --help` is rendered, so that the names are those of the registries,
plugins' included, while `unpoison --help` and the parsing of a command import none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import Field, fields
from typing import TYPE_CHECKING

from typer.core import TyperCommand

if TYPE_CHECKING:
    from unpoison.attacks import Attack
    from unpoison.cli.click_types import Context, HelpFormatter, Parameter
    from unpoison.simulation.faults import Fault

PLACEHOLDER = re.compile(r"\{(\w+)\}")


class CommandWithNames(TyperCommand):
    """A command whose parameters' help texts and defaults may have placeholders of `NAMES`."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help, with names in the place of placeholders."""
        # A copy: commands are built once, and more names may be registered by the next call.
        named = copy(self)
        named.params = [_with_names(parameter) for parameter in self.params]
        TyperCommand.format_help(named, ctx, formatter)


def fill_names(text: str) -> str:
    """A help text with names in the place of its placeholders.

    >>> fill_names("What counts: {engines}.")
    'What counts: local or dask.'
    """
    return PLACEHOLDER.sub(lambda placeholder: NAMES[placeholder[1]](), text)


def _with_names(parameter: Parameter) -> Parameter:
    named = copy(parameter)
    for attribute in ("help", "show_default"):
        text = getattr(parameter, attribute, None)
        if isinstance(text, str):
            setattr(named, attribute, fill_names(text))
    return named


def alternatives(names: Iterable[str]) -> str:
    """Names in a sentence, the last after `or`.

    >>> alternatives(["left", "right", "both"])
    'left, right or both'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _attacks(categorical: bool) -> str:
    """Attacks on one kind of value, each with its parameters in order: `uniform:LOW,HIGH`."""
    from unpoison.attacks import attacks

    fitting = [name for name in attacks if attacks[name].categorical in (None, categorical)]
    return alternatives(_written_form(name, attacks[name]) for name in fitting)


def _faults() -> str:
    from unpoison.simulation.faults import faults

    return alternatives(_written_form(name, faults[name]) for name in faults)


def _written_form(name: str, kind: type[Attack] | type[Fault]) -> str:
    """`NAME:PARAMETER,PARAMETER`, and `;ATTACK` where another attack is a parameter."""
    from unpoison.attacks.parsing import ATTACK

    # Every attack and fault is a dataclass, whose fields are its parameters.
    parameters = fields(kind)  # type: ignore[arg-type]
    own = [_written_parameter(field) for field in parameters if str(field.type) != ATTACK]
    other = ";ATTACK" if len(own) < len(parameters) else ""
    return f"{name}:{','.join(own)}{other}" if own else name


def _written_parameter(field: Field[object]) -> str:
    """The parameter in capitals; one that takes any number of texts is shown as two of them."""
    from unpoison.attacks.parsing import VARIADIC

    written = field.name.upper()
    return ",".join(2 * [written.removesuffix("S")]) if str(field.type) in VARIADIC else written


def _benchmarks() -> str:
    from unpoison.bench import benchmarks

    return ", ".join(benchmarks)


def _datasets() -> str:
    from unpoison.datasets import datasets

    return alternatives(datasets)


def _engines() -> str:
    from unpoison.engines import engines

    return alternatives(engines)


def _experiments(of_the_paper: bool) -> str:
    from unpoison.experiments import experiments

    return ", ".join(name for name in experiments if experiments[name].of_the_paper == of_the_paper)


def _mechanisms(for_devices: bool) -> str:
    from unpoison.mechanisms import mechanisms

    return alternatives(name for name in mechanisms if mechanisms[name].for_devices == for_devices)


def _methods(of_the_paper: bool) -> str:
    """Methods that are no defences: those of the paper, or all others."""
    from unpoison.estimate.methods import method_names, methods

    filters = [name for name in method_names() if not methods[name].is_defence]
    return ", ".join(name for name in filters if methods[name].of_the_paper == of_the_paper)


def _default_methods() -> str:
    """The default method of each protocol."""
    from unpoison.estimate.methods import default_method
    from unpoison.plan import Plan
    from unpoison.plan.budgets import BASELINE

    usual, baseline = Plan.new(low=0, high=1), Plan.new(low=0, high=1, protocol=BASELINE)
    return f"{default_method(usual)}; {default_method(baseline)} for a baseline plan"


def _defences() -> str:
    from unpoison.defences import defences

    return ", ".join(defences)


def _statistics() -> str:
    from unpoison.estimate.statistic import STATISTICS

    return alternatives(STATISTICS)


NAMES: dict[str, Callable[[], str]] = {
    "attacks_on_categories": lambda: _attacks(categorical=True),
    "attacks_on_numbers": lambda: _attacks(categorical=False),
    "benchmarks": _benchmarks,
    "datasets": _datasets,
    "default_methods": _default_methods,
    "defences": _defences,
    "device_mechanisms": lambda: _mechanisms(for_devices=True),
    "engines": _engines,
    "faults": _faults,
    "other_experiments": lambda: _experiments(of_the_paper=False),
    "other_methods": lambda: _methods(of_the_paper=False),
    "paper_experiments": lambda: _experiments(of_the_paper=True),
    "paper_methods": lambda: _methods(of_the_paper=True),
    "simulation_mechanisms": lambda: _mechanisms(for_devices=False),
    "statistics": _statistics,
}
"""The text that takes the place of each placeholder."""
