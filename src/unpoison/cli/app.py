"""The typer application that commands are added to, with the options before any command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison._version import __version__
from unpoison.cli.options import option

app = typer.Typer(
    name="unpoison",
    help="Statistics under local differential privacy that survive colluding poisoners.",
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error), 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}")
        raise typer.Exit


@app.callback()
def before_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        option("Python file with attacks, defences, datasets… of your own; may be repeated."),
    ] = None,
) -> None:
    """Statistics under local differential privacy that survive colluding poisoners."""
    # Typer calls this before the command: plugins' names are known by then, also to its help.
    if plugin:
        from unpoison.plugins import load_plugins

        load_plugins(plugin)
