"""`unpoison issuer`: a small issuer of Privacy Pass tokens."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.options import check_at_least_one, option, whole_number_option
from unpoison.errors import MissingExtra

issuer = typer.Typer(
    name="issuer",
    help="Issue Privacy Pass tokens to accounts, for campaigns with --access token.\n\n"
    "For tests, demonstrations and small deployments: one process, one SQLite file, and a private "
    "operation that is blinded, but not in constant time. Use one key for each campaign: the "
    "issuer cannot see which campaign a token is for, so that it counts tokens by key.\n\n"
    "Example: unpoison issuer serve rides.pem --port 8100",
    epilog="First `issuer key rides.pem`, then `campaign create … --access token --issuer-key "
    "rides.pub.pem --issuer-name login.example`, then `issuer accounts -n 100`, then `issuer "
    "serve rides.pem`. Devices: `report … --issuer https://login.example`.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)

DEFAULT_REGISTER = Path("issuer.db")
Register = Annotated[
    Path, option("SQLite file with the hashes of accounts, and what was issued.", "--register")
]


@issuer.command("key")
def make_key(
    file: Annotated[
        Path, typer.Argument(help="Where to write the private key, such as rides.pem.")
    ],
    replaces: Annotated[
        Path | None,
        option("Public key of an earlier key: who has had a token of it gets none of the new one."),
    ] = None,
    register: Register = DEFAULT_REGISTER,
) -> None:
    """Make a key: the private one in FILE, the public one beside it (rides.pub.pem).

    Example: unpoison issuer key rides.pem
    """
    _check_extra()
    from unpoison.issuer.register import Register as OpenRegister
    from unpoison.issuer.signing_keys import load_public_key, make_key_files

    if replaces is None:
        key, public = make_key_files(file)
    else:
        old = load_public_key(replaces)
        # Opened before the key is made: one that did not count with the old would let all in again.
        with OpenRegister(register) as opened:
            key, public = make_key_files(file)
            opened.replace_key(old.id, key.id)
    typer.echo(f"private key: {file}\npublic key: {public}\nid: {key.id.hex()}")


@issuer.command()
def accounts(
    count: Annotated[int, whole_number_option("How many.", "--count", "-n")] = 1,
    register: Register = DEFAULT_REGISTER,
) -> None:
    """Make accounts and print their tokens, one a line. Only hashes are kept: save them.

    Example: unpoison issuer accounts -n 100 > accounts.txt
    """
    check_at_least_one("--count", count)
    from unpoison.issuer.register import Register as OpenRegister

    with OpenRegister(register) as opened:
        typer.echo("\n".join(opened.add_accounts(count)))


@issuer.command()
def remove(
    file: Annotated[
        typer.FileText,
        typer.Argument(
            help="Tokens of accounts, one a line; - for standard input.", errors="replace"
        ),
    ],
    register: Register = DEFAULT_REGISTER,
) -> None:
    """Remove accounts: they get no more tokens. Those that they have stay valid.

    A running issuer refuses them at once. Tokens are read from a file, since other users of the
    machine can see the arguments of a command.

    Example: unpoison issuer remove left.txt
    """
    tokens = file.read().split()
    from unpoison.issuer.register import Register as OpenRegister

    with OpenRegister(register) as opened:
        removed = opened.remove_accounts(tokens)
    typer.echo(f"removed: {removed}\nunknown: {len(tokens) - removed}")


@issuer.command()
def serve(
    keys: Annotated[list[Path], typer.Argument(help="Private keys, one for each campaign.")],
    register: Register = DEFAULT_REGISTER,
    tokens: Annotated[
        int, whole_number_option("The most tokens of each key for each account.")
    ] = 1,
    host: Annotated[str, option("Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, whole_number_option("Port to listen at; 0 takes a free one.")
    ] = 8100,  # Beside the collector's 8000.
    allow_origin: Annotated[
        list[str] | None,
        option("A website whose pages may fetch tokens with client.js; may be repeated."),
    ] = None,
) -> None:
    """Run the issuer: GET /.well-known/private-token-issuer-directory and POST /token-request.

    Accounts send their token as Authorization: Bearer. Put a proxy with TLS before it.

    Example: unpoison issuer serve rides.pem --tokens 1 --port 8100
    """
    check_at_least_one("--tokens", tokens)
    _check_extra()
    from unpoison.issuer.register import Register as OpenRegister
    from unpoison.issuer.server import run
    from unpoison.issuer.service import TokenService
    from unpoison.issuer.signing_keys import SigningKeys

    signing_keys = SigningKeys.load(keys)
    with OpenRegister(register) as opened, suppress(KeyboardInterrupt, SystemExit):
        service = TokenService(signing_keys, opened, tokens)
        run(service, host, port, _print_address, allow_origin or ())


def _print_address(address: str) -> None:
    typer.echo(f"Issuer: {address}")


def _check_extra() -> None:
    try:
        import cryptography  # noqa: F401
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("the issuer", "collector") from None
