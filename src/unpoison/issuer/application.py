"""The issuer over HTTP: its directory, and requests for tokens, as RFC 9578 describes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from unpoison.issuer.refusals import Refusal
from unpoison.issuer.service import REQUEST_PATH, TokenService
from unpoison.issuer.wrong_accounts import WrongAccounts
from unpoison.privacy_pass.issuance import (
    DIRECTORY_PATH,
    DIRECTORY_TYPE,
    REQUEST_BYTES,
    REQUEST_TYPE,
    RESPONSE_TYPE,
)

DIRECTORY_SECONDS = 300
"""How long a directory may be kept: a new campaign's key is known to all devices after minutes."""
BEARER = "bearer "


def application_of(service: TokenService, origins: Sequence[str] = ()) -> FastAPI:
    """The ASGI application of an issuer; pages of these origins may ask for tokens.

    >>> from unpoison.issuer.register import Register
    >>> from unpoison.issuer.signing_keys import SigningKeys
    >>> with Register(None) as register:
    ...     application = application_of(TokenService(SigningKeys([]), register, 1))
    >>> sorted(route.path for route in application.routes)[1]
    '/token-request'
    """
    # No description for machines: RFC 9578 is the description.
    application, wrong_accounts = FastAPI(openapi_url=None), WrongAccounts()

    @application.get(DIRECTORY_PATH)
    async def directory() -> Response:
        headers = {"Cache-Control": f"max-age={DIRECTORY_SECONDS}"}
        return JSONResponse(service.directory(), headers=headers, media_type=DIRECTORY_TYPE)

    @application.post(REQUEST_PATH)
    async def token_request(request: Request) -> Response:
        account = _account(request)
        # Before the body is read: whoever has no account makes no work. Right credentials are let
        # through however many wrong ones came from the same address, which may be a proxy's.
        if not await asyncio.to_thread(service.register.knows, account):
            raise wrong_accounts.refusal(request.client.host if request.client else "")
        if request.headers.get("content-type", "").partition(";")[0].strip() != REQUEST_TYPE:
            raise Refusal("unsupported-media-type")
        body = await _bounded_body(request)
        # In a thread: a signature takes some hundredths of a second.
        signature = await asyncio.to_thread(service.issue, account, body)
        headers = {"Cache-Control": "no-store"}
        return Response(signature, headers=headers, media_type=RESPONSE_TYPE)

    application.add_exception_handler(Refusal, _refuse)
    application.add_exception_handler(HTTPException, _refuse)
    if origins:
        application.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return application


def _account(request: Request) -> str:
    """The account's token in the header of the request; empty if there is none."""
    header = request.headers.get("authorization", "")
    return header[len(BEARER) :].strip() if header.lower().startswith(BEARER) else ""


async def _bounded_body(request: Request) -> bytes:
    """The body, of which no more is kept than a request has."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > REQUEST_BYTES:
            raise Refusal("invalid-request")
    return body


async def _refuse(request: Request, fault: Exception) -> Response:
    if isinstance(fault, HTTPException):
        fault = Refusal("method-not-allowed" if fault.status_code == 405 else "not-found")
    refusal = fault if isinstance(fault, Refusal) else Refusal("not-found")
    return JSONResponse(refusal.body(), refusal.status, refusal.headers())
