"""Settings: from options, the environment (UNPOISON_COLLECTOR_…) and a TOML file, in this order."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from unpoison.collector.storage.database import database_url, sqlite_file
from unpoison.collector.storage.writer import Batching
from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.plan.form import refuse_unknown

PREFIX = "UNPOISON_COLLECTOR_"
ORIGIN = re.compile(r"https?://[^/?#\s]+")
LEVELS = ("debug", "info", "warning", "error")


class Settings(BaseSettings):
    """All that an operator can choose.

    >>> settings = Settings.load(port=9000)
    >>> settings.port, settings.batch_size, settings.keys.name
    (9000, 512, 'unpoison.db.keys')
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen at.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen at; 0 takes a free one.")
    database: SecretStr = Field(
        SecretStr("unpoison.db"),
        description="SQLite file, or a URL such as postgresql://host/name.",
    )
    key_file: Path | None = Field(
        None, description="File of the keys that sign tickets; beside the database by default."
    )
    operator_token: SecretStr | None = Field(
        None, min_length=20, description="An operator's token to accept, beside the database's."
    )
    public: bool = Field(False, description="Let everybody read estimates and watch the page.")
    keep_submissions: float = Field(
        30.0,
        ge=0,
        le=36500,
        description="Days after which a submission's values are forgotten; counts stay.",
    )
    ticket_days: float = Field(
        7.0, ge=0.01, le=3650, description="Days for which a ticket is valid."
    )
    estimate_every: float = Field(
        60.0,
        ge=1,
        le=86400,
        description="Seconds between estimates for the page, where counts changed.",
    )
    batch_size: int = Field(
        Batching.size, ge=1, le=10_000, description="Most requests a transaction."
    )
    batch_delay: float = Field(
        Batching.delay, ge=0, le=1, description="Seconds that a request waits for others to come."
    )
    queue_size: int = Field(
        Batching.waiting, ge=1, description="Most requests that wait to be stored."
    )
    enrolments_per_hour: int = Field(
        20, ge=1, description="Most enrolments in open campaigns from one address."
    )
    guesses_per_minute: int = Field(
        20, ge=1, description="Most wrong invites and tokens from one address."
    )
    allowed_origins: list[str] = Field(
        [], description="Websites whose pages may report with client.js."
    )
    trusted_proxies: list[str] = Field(
        [], description="Addresses of proxies whose X-Forwarded-For is believed."
    )
    request_seconds: float = Field(
        10.0,
        gt=0,
        le=3600,
        description="Seconds in which a request's head, and then its body, must come.",
    )
    connections: int = Field(1000, ge=1, description="Most connections at once.")
    log_level: str = Field("info", description="debug, info, warning or error.")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level not in LEVELS:
            raise ValueError(f"must be one of {', '.join(LEVELS)}")
        return level

    @field_validator("allowed_origins")
    @classmethod
    def _plain_origins(cls, origins: list[str]) -> list[str]:
        if not all(ORIGIN.fullmatch(each) for each in origins):
            raise ValueError("must be origins such as https://example.org, without a path")
        return origins

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` gives: it knows the environment and the file."""
        return (init_settings,)

    @classmethod
    def load(cls, file: Path | None = None, **given: Any) -> Settings:
        """Settings from a file, the environment, and options, which win over one another."""
        options = {name: value for name, value in given.items() if value is not None}
        try:
            return cls(**{**_from_file(file), **_from_environment(), **options})
        except ValidationError as fault:
            raise _told(fault) from None

    @property
    def keys(self) -> Path:
        """Where the keys are."""
        if self.key_file is not None:
            return self.key_file
        beside = sqlite_file(database_url(self.database.get_secret_value()))
        return Path("unpoison.keys") if beside is None else beside.with_name(f"{beside.name}.keys")


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
    """Variables with our prefix; a misspelt one is an error and not a surprise."""
    found = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in os.environ.items()
        if name.startswith(PREFIX)
    }
    refuse_unknown(found, tuple(Settings.model_fields), f"the environment ({PREFIX}…)")
    lists = ("allowed_origins", "trusted_proxies")
    return {
        name: text.replace(",", " ").split() if name in lists else text
        for name, text in found.items()
    }


def _told(fault: ValidationError) -> InvalidParameter:
    """The first fault in our words; secrets are not repeated."""
    first = fault.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    secret = name in ("database", "operator_token")
    rule = first["msg"].removeprefix("Value error, ")
    return InvalidParameter(
        name,
        f"is not valid: {rule[:1].lower()}{rule[1:]}",
        "a secret" if secret else first["input"],
    )
