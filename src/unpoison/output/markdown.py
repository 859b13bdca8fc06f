"""Tables that commands keep up to date in Markdown pages, between two markers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unpoison.errors import InvalidFile


def check_markers(path: Path, name: str) -> tuple[str, str]:
    """The text up to the begin marker, and that from the end marker on; both must be there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder, "page.md")
    ...     _ = page.write_text("above <!-- x:begin --><!-- x:end --> below")
    ...     check_markers(page, "x")
    ('above <!-- x:begin -->', '<!-- x:end --> below')
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidFile(path, "must be text") from None
    if begin not in text or end not in text:
        raise InvalidFile(path, f"must have the markers {begin} and {end}")
    return text.split(begin)[0] + begin, end + text.split(end)[1]


def put_between_markers(path: Path, name: str, table: str) -> None:
    """Replace the text between the markers; the file changes whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder, "page.md")
    ...     _ = page.write_text("<!-- x:begin -->old<!-- x:end -->")
    ...     put_between_markers(page, "x", "new")
    ...     page.read_text().split()[3]
    'new'
    """
    from unpoison.system.atomic_files import whole_file

    before, after = check_markers(path, name)
    with whole_file(path) as file:
        file.write(f"{before}\n\n{table}\n\n{after}".encode())


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first as its head.

    >>> print(markdown_table([["fruit"], ["apple"]]))
    | fruit |
    | --- |
    | apple |
    """
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(_escaped(line))} |" for line in lines)


def _escaped(cells: Sequence[str]) -> list[str]:
    return [cell.replace("|", "\\|") for cell in cells]
