"""The report of a run: one HTML page with every figure, table and claim."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unpoison.experiments.claims import OWN_AIM, PAPER_CLAIM, Claim
from unpoison.output.markdown import markdown_table

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
img { background: #fff; height: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { border-bottom: 1px solid #8884; padding: 0.2rem 0.8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.claims th, .claims td { text-align: left; vertical-align: top; }
.yes { color: #1a7f37; font-weight: 600; } .no { color: #d1242f; font-weight: 600; }
.wide { overflow-x: auto; }
"""


@dataclass(frozen=True)
class Section:
    """One experiment: its picture (PNG), its tables by title, and its claims.

    >>> Section("fig-sw", "Fig. SW", b"").claims
    []
    """

    name: str
    title: str
    picture: bytes
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    of_the_paper: bool = True

    @property
    def claim_title(self) -> str:
        """The heading above the claims."""
        return "What the paper says" if self.of_the_paper else "What it is to reach"

    @property
    def claim_head(self) -> str:
        """The head of the column of claims."""
        return PAPER_CLAIM if self.of_the_paper else OWN_AIM


def report(sections: Sequence[Section], command: str) -> str:
    """The page that `command` made, with pictures in it: one file that can be sent around.

    >>> claim = Claim("γ̂ tends to γ", confirmed=False, evidence="0.2 at ε = 1/16")
    >>> page = report([Section("x", "An experiment", b"", claims=[claim])], "x --quick")
    >>> "An experiment" in page, "not confirmed" in page
    (True, True)
    """
    body = "\n".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>unpoison: reproduction</title><style>{STYLE}</style></head>\n"
        f"<body><h1>Reproduction</h1><p>Made by <code>{html.escape(command)}</code>.</p>\n"
        f"{_all_claims(sections)}\n{body}\n</body></html>\n"
    )


def _all_claims(sections: Sequence[Section]) -> str:
    """A table of all claims at a glance, the paper's and ours."""
    return "".join(
        _claims_table([section for section in sections if section.of_the_paper is of_the_paper])
        for of_the_paper in (True, False)
    )


def _claims_table(sections: Sequence[Section]) -> str:
    rows = [
        f'<tr><td><a href="#{section.name}">{section.name}</a></td>{_claim_cells(claim)}</tr>'
        for section in sections
        for claim in section.claims
    ]
    if not rows:
        return ""
    title, head = sections[0].claim_title, sections[0].claim_head
    heads = f"<tr><th>experiment</th><th>{head}</th><th>this run</th><th>by</th></tr>"
    table = f'<table class="claims">{heads}{"".join(rows)}</table>'
    return f'<h2>{title}</h2><div class="wide">{table}</div>'


def _claim_cells(claim: Claim) -> str:
    style, verdict = ("yes", "confirmed") if claim.confirmed else ("no", "not confirmed")
    return (
        f'<td>{html.escape(claim.text)}</td><td class="{style}">{verdict}</td>'
        f"<td>{html.escape(claim.evidence)}</td>"
    )


def _section(section: Section) -> str:
    picture = base64.b64encode(section.picture).decode()
    image = f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{picture}">'
    tables = "".join(_table(title, rows) for title, rows in section.tables.items())
    detail = f"<details><summary>Tables</summary>{tables}</details>" if tables else ""
    return f'<h2 id="{section.name}">{html.escape(section.title)}</h2>{image}{detail}'


def _table(title: str, rows: list[list[str]]) -> str:
    cells = ["".join(_cell(cell, row is rows[0]) for cell in row) for row in rows]
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<h3>{html.escape(title)}</h3><div class="wide"><table>{lines}</table></div>'


def _cell(text: str, head: bool) -> str:
    tag = "th" if head else "td"
    return f"<{tag}>{html.escape(text)}</{tag}>"


def markdown(tables: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Tables in Markdown, each under its title.

    >>> print(markdown({"Fruit": [["name"], ["apple"]]}))
    **Fruit**
    <BLANKLINE>
    | name |
    | --- |
    | apple |
    """
    return "\n\n".join(f"**{title}**\n\n{markdown_table(rows)}" for title, rows in tables.items())
