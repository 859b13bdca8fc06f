"""Types of the parser inside typer, which typer does not export. For type checkers only.

typer has its own copy of click in a private module, so this file is the only one that names it.
"""

from typer._click import Command, Context, HelpFormatter
from typer._click.core import Parameter

__all__ = ["Command", "Context", "HelpFormatter", "Parameter"]
