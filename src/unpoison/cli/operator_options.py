"""Options of every command that an operator runs, and the decorator that adds them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Concatenate

import typer

from unpoison.cli.options import option
from unpoison.errors import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from unpoison.client.operator import Operator

TOKEN_VARIABLE = "UNPOISON_TOKEN"
LOCAL_COLLECTOR = "http://127.0.0.1:8000"
"""The address at which `unpoison serve` listens if nothing else is said."""

CollectorAddress = Annotated[
    str,
    typer.Option("--collector", envvar="UNPOISON_COLLECTOR", help="The collector's address."),
]
TokenFile = Annotated[
    Path | None, option("File with the operator's token; else UNPOISON_TOKEN has it.")
]
Insecure = Annotated[
    bool, option("Allow http:// to another machine: for tests only.", "--insecure")
]


def operator_command(command: Callable[Concatenate[Operator, ...], None]) -> Callable[..., None]:
    """A command that takes the operator's options in the place of its first parameter.

    Typer reads a command's signature. The wrapper has one that was put together: the command's own
    parameters without the operator, and those of `_operator`.
    """
    # Operator is imported for type checkers only, so its name stands for anything here.
    signature = inspect.signature(command, eval_str=True, locals={"Operator": object})
    _, *own = signature.parameters.values()
    shared = inspect.signature(_operator, eval_str=True, locals={"Operator": object}).parameters

    @wraps(command)
    def run(**values: object) -> None:
        operator_values = {name: values.pop(name) for name in shared}
        command(_operator(**operator_values), **values)  # type: ignore[arg-type]

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*own, *shared.values())
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _operator(
    collector: CollectorAddress = LOCAL_COLLECTOR,
    token_file: TokenFile = None,
    insecure: Insecure = False,
) -> Operator:
    from unpoison.client.operator import Operator

    return Operator(collector, _read_token(token_file), insecure=insecure)


def _read_token(file: Path | None) -> str:
    """The token from a file or the environment: not from an option, which other users can see."""
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
    else:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidFile(file, "cannot be read as a token") from None
    if not token:
        rule = f"must be in {TOKEN_VARIABLE} or in --token-file"
        raise InvalidParameter("token", rule, "nothing")
    return token
