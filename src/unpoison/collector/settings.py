"""Settings of a collector: options win over the environment, which wins over a TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from unpoison.client.address import Address
from unpoison.collector.storage.database import database_url, sqlite_file
from unpoison.collector.storage.writer import Batching
from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.plan.form import refuse_unknown

PREFIX = "UNPOISON_COLLECTOR_"
"""How the names of environment variables begin; the setting's name follows in capitals."""
ORIGIN = re.compile(r"https?://[^/?#\s]+")
"""Scheme, host and port: browsers send nothing more in the header `Origin`."""
SECRETS = ("database", "operator_token", "webhook_url", "webhook_secret")
"""Settings whose values no error may repeat; the database's URL may hold a password,
and a webhook's path often is one."""
LISTS = ("allowed_origins", "trusted_proxies")
"""Settings that are lists, with commas between in the environment."""
LOG_LEVELS = ("debug", "info", "warning", "error")


class Settings(BaseModel):
    """The settings of a server, each with its default and bounds.

    `load` reads the environment and the file: pydantic-settings ignores misspelt variables, and
    takes a tenth of a server's start.

    >>> settings = Settings.load(port=9000)
    >>> settings.port, settings.batch_size, settings.keys.name
    (9000, 512, 'unpoison.db.keys')
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    host: str = Field("127.0.0.1", description="Address to listen at.")
    # The usual port of a web application behind a proxy.
    port: int = Field(8000, ge=0, le=65535, description="Port to listen at; 0 takes a free one.")
    # More than a machine has cores gains nothing; the bound is a large machine's.
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes; on SQLite one of them writes and the others answer.",
    )
    metrics_host: str = Field(
        "127.0.0.1", description="Address at which metrics_port listens, without a token."
    )
    # Every port that a system has; 0 would leave nobody knowing which one it is.
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Port of its own for the metrics, of campaigns too."
    )
    database: SecretStr = Field(
        SecretStr("unpoison.db"),
        description="SQLite file, or a URL such as postgresql://host/name.",
    )
    key_file: Path | None = Field(
        None, description="File of the keys that sign tickets; beside the database by default."
    )
    # 20 characters of a random token hold about 120 bits, which nobody guesses.
    operator_token: SecretStr | None = Field(
        None, min_length=20, description="An operator's token to accept, beside the database's."
    )
    webhook_url: SecretStr | None = Field(
        None, description="Where alarms are sent: https, or http on this machine."
    )
    # As for tokens: nobody guesses it.
    webhook_secret: SecretStr | None = Field(
        None, min_length=20, validate_default=True, description="The key that signs them."
    )
    public: bool = Field(False, description="Let everybody read estimates and watch the page.")
    # Long enough to copy a file to several machines. The least is six looks at the key file.
    key_grace: float = Field(
        300.0,
        ge=30,
        le=30 * 86400,
        description="Seconds after --rotate-key for which the new key does not sign yet.",
    )
    # A month to look into a suspicious collection; the upper bound is a hundred years: for ever.
    keep_submissions: float = Field(
        30.0,
        ge=0,
        le=36500,
        description="Days after which a submission's values are forgotten; counts stay.",
    )
    # A device that is offline for some days still reports. The least is a quarter of an hour.
    ticket_days: float = Field(
        7.0, ge=0.01, le=3650, description="Days for which a ticket is valid."
    )
    # An estimate takes seconds of the processor: once a minute leaves most of it to devices.
    estimate_every: float = Field(
        60.0,
        ge=1,
        le=86400,
        description="Seconds between estimates for the page, where counts changed.",
    )
    # As many as a request of a gateway may hold; more would make single devices wait for seconds.
    batch_size: int = Field(
        Batching.size, ge=1, le=10_000, description="Most requests a transaction."
    )
    batch_delay: float = Field(
        Batching.delay, ge=0, le=1, description="Seconds that a request waits for others to come."
    )
    queue_size: int = Field(
        Batching.most_waiting, ge=1, description="Most requests that wait to be stored."
    )
    # A household or a small office has one address.
    enrolments_per_hour: int = Field(
        20, ge=1, description="Most enrolments in open campaigns from one address."
    )
    # Secrets of 128 bits cannot be guessed anyway; this keeps attempts from costing much.
    guesses_per_minute: int = Field(
        20, ge=1, description="Most wrong invites and operators' tokens from one address."
    )
    allowed_origins: list[str] = Field(
        [], description="Websites whose pages may report with client.js."
    )
    trusted_proxies: list[str] = Field(
        [], description="Addresses or networks of proxies whose X-Forwarded-For is believed."
    )
    # Long for a slow mobile network, short for a sender that wants to occupy a connection.
    request_seconds: float = Field(
        10.0,
        gt=0,
        le=3600,
        description="Seconds in which a request's head, and then its body, must come, and its "
        "answer be read.",
    )
    # A thousand devices that report in the same seconds; a server answers as many a second.
    connections: int = Field(
        1000, ge=1, description="Most connections at once, beside a reserve for health checks."
    )
    log_level: str = Field("info", description="debug, info, warning or error.")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level not in LOG_LEVELS:
            raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
        return level

    @field_validator("webhook_url")
    @classmethod
    def _private_webhook(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            try:
                Address.parse_for_secrets(url.get_secret_value())
            except InvalidParameter:
                rule = "must be an address like https://example.org/alarms, without a query"
                raise ValueError(rule) from None
        return url

    @field_validator("webhook_secret")
    @classmethod
    def _signed_webhook(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if secret is None and info.data.get("webhook_url") is not None:
            raise ValueError("must be set where webhook_url is")
        return secret

    @field_validator("allowed_origins")
    @classmethod
    def _plain_origins(cls, origins: list[str]) -> list[str]:
        if not all(ORIGIN.fullmatch(origin) for origin in origins):
            raise ValueError("must be origins such as https://example.org, without a path")
        return origins

    @field_validator("trusted_proxies")
    @classmethod
    def _proxy_addresses(cls, proxies: list[str]) -> list[str]:
        # uvicorn takes any other text for a name that no connection ever has, without a word.
        for proxy in proxies:
            try:
                ip_network(proxy)
            except ValueError:
                rule = "must be addresses or networks such as 10.0.0.1 or 10.0.0.0/24, not names"
                raise ValueError(rule) from None
        return proxies

    @classmethod
    def load(cls, file: Path | None = None, **options: Any) -> Settings:
        """Settings from a file, the environment and options; options that are None are not set."""
        given = {name: value for name, value in options.items() if value is not None}
        try:
            return cls(**{**_from_file(file), **_from_environment(), **given})
        except ValidationError as fault:
            raise _invalid_parameter(fault) from None

    @property
    def keys(self) -> Path:
        """The file of signing keys; beside an SQLite database by default."""
        if self.key_file is not None:
            return self.key_file
        database = sqlite_file(database_url(self.database.get_secret_value()))
        if database is None:
            return Path("unpoison.keys")
        return database.with_name(f"{database.name}.keys")


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        keys = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as fault:
        raise InvalidFile(file, f"cannot be read ({fault.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise InvalidFile(file, f"is not TOML ({fault})") from None
    refuse_unknown(keys, tuple(Settings.model_fields), str(file))
    return keys


def _from_environment() -> dict[str, Any]:
    """Variables with our prefix; one that names no setting is an error."""
    variables = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in os.environ.items()
        if name.startswith(PREFIX)
    }
    refuse_unknown(variables, tuple(Settings.model_fields), f"the environment ({PREFIX}…)")
    return {
        name: text.replace(",", " ").split() if name in LISTS else text
        for name, text in variables.items()
    }


def _invalid_parameter(fault: ValidationError) -> InvalidParameter:
    """The first of Pydantic's errors as one of this library."""
    first = fault.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    rule = first["msg"].removeprefix("Value error, ")
    return InvalidParameter(
        name,
        f"is not valid: {rule[:1].lower()}{rule[1:]}",
        "a secret" if name in SECRETS else first["input"],
    )
