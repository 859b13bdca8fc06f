"""The page and its files. All that they show is fetched from the API by the browser."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates

from unpoison._version import __version__
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import Service
from unpoison.collector.service.collector import Collector

PAGE = Path(__file__).parent.parent / "page"
templates = Jinja2Templates(PAGE / "templates")
router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def _page(
    request: Request, collector: Collector, template: str, title: str, campaign: str | None = None
) -> HTMLResponse:
    context = {
        "title": title,
        "version": __version__,
        "campaign": campaign,
        "public": collector.settings.public,
    }
    return templates.TemplateResponse(request, template, context)


async def _campaign_page(
    request: Request, collector: Collector, template: str, campaign: str
) -> HTMLResponse:
    """A page about a campaign; the page itself says so if there is none."""
    try:
        title, status = (await collector.campaign(campaign)).name, 200
    except Fault as fault:
        title, status = "No such campaign", fault.status
    answer = _page(request, collector, template, title, campaign)
    answer.status_code = status
    return answer


@router.get("/")
async def campaigns(request: Request, collector: Service) -> HTMLResponse:
    """All campaigns."""
    return _page(request, collector, "campaigns.html", "Campaigns")


@router.get("/campaigns/{campaign}")
async def campaign(request: Request, campaign: str, collector: Service) -> HTMLResponse:
    """One campaign."""
    return await _campaign_page(request, collector, "campaign.html", campaign)


@router.get("/campaigns/{campaign}/report")
async def report(request: Request, campaign: str, collector: Service) -> HTMLResponse:
    """A form that reports one value with the browser client."""
    return await _campaign_page(request, collector, "report.html", campaign)


@router.get("/client.js")
async def client() -> FileResponse:
    """The browser client, for other pages to import."""
    return FileResponse(PAGE / "static" / "client.js", media_type="text/javascript")


def add_pages(application: FastAPI) -> None:
    """Pages and static files.

    >>> application = FastAPI()
    >>> add_pages(application)
    >>> application.url_path_for("static", path="page.css")
    '/static/page.css'
    """
    application.include_router(router)
    application.mount("/static", StaticFiles(directory=PAGE / "static"), name="static")
