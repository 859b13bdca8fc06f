"""Routes for browsers: HTML pages and their files; scripts fetch the contents from the API."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from unpoison._version import __version__
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import Service
from unpoison.collector.service.collector import Collector

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

PAGE_FOLDER = Path(__file__).parents[2] / "page"
router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@cache
def _templates() -> Jinja2Templates:
    """The pages' templates, loaded for the first page: a server of devices alone needs none."""
    from fastapi.templating import Jinja2Templates

    return Jinja2Templates(PAGE_FOLDER / "templates")


def _page(
    request: Request, collector: Collector, template: str, title: str, campaign: str | None = None
) -> HTMLResponse:
    context = {
        "title": title,
        "version": __version__,
        "campaign": campaign,
        "public": collector.settings.public,
    }
    return _templates().TemplateResponse(request, template, context)


async def _campaign_page(
    request: Request, collector: Collector, template: str, campaign: str
) -> HTMLResponse:
    """A page about a campaign; with status 404, and a message on it, if there is none."""
    try:
        title, status = (await collector.campaign(campaign)).name, 200
    except Fault as fault:
        title, status = "No such campaign", fault.status
    response = _page(request, collector, template, title, campaign)
    response.status_code = status
    return response


@router.get("/")
async def campaigns(request: Request, collector: Service) -> HTMLResponse:
    """The list of campaigns."""
    return _page(request, collector, "campaigns.html", "Campaigns")


@router.get("/campaigns/{campaign}")
async def campaign(request: Request, campaign: str, collector: Service) -> HTMLResponse:
    """The page of one campaign."""
    return await _campaign_page(request, collector, "campaign.html", campaign)


@router.get("/campaigns/{campaign}/report")
async def report(request: Request, campaign: str, collector: Service) -> HTMLResponse:
    """A form that reports one value with the browser client."""
    return await _campaign_page(request, collector, "report.html", campaign)


@router.get("/client.js")
async def client() -> FileResponse:
    """The browser client, for other pages to import."""
    return FileResponse(PAGE_FOLDER / "static" / "client.js", media_type="text/javascript")


@router.get("/privacy-pass.js")
async def privacy_pass() -> FileResponse:
    """What the browser client imports for campaigns by token."""
    return FileResponse(PAGE_FOLDER / "static" / "privacy-pass.js", media_type="text/javascript")


def add_static_files(application: FastAPI) -> None:
    """Add the files that pages load to an application.

    >>> application = FastAPI()
    >>> add_static_files(application)
    >>> application.url_path_for("static", path="page.css")
    '/static/page.css'
    """
    application.mount("/static", StaticFiles(directory=PAGE_FOLDER / "static"), name="static")
