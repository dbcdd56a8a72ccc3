"""Looks through the built docs site: no page may ask anything of another host, whatever a reader clicks not.

Usage: check_site.py DIRECTORY
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "link": "href", "use": "href",
}  # fmt: skip
"""Elements that are fetched with the page, and where each names what is fetched."""
_ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
_NOT_FETCHED = frozenset({"canonical", "alternate", "license", "next", "prev"})


class Requests(HTMLParser):
    """What a page fetches from another host, and whether it has what makes the theme's script fetch more."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        named = given.get(LOADED.get(tag, "")) or ""
        fetched = tag != "link" or not _NOT_FETCHED & set((given.get("rel") or "").split())
        if fetched and _ELSEWHERE.match(named):
            self.found.append(named)
        if "mermaid" in (given.get("class") or "").split():
            self.found.append("a mermaid diagram, for which the theme loads a library")
        if given.get("data-md-component") == "source":
            self.found.append("the badge of a repository, for which the theme asks its host")


def requests_of(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".css":
        return _IN_STYLE.findall(text)
    parser = Requests()
    parser.feed(text)
    return parser.found + _IN_STYLE.findall(text)


def main() -> int:
    site = Path(sys.argv[1])
    pages = sorted(one for one in site.rglob("*") if one.suffix in {".html", ".css"})
    found = {page: requests for page in pages if (requests := requests_of(page))}
    for page, requests in found.items():
        print(f"{page.relative_to(site)}: {', '.join(requests)}", file=sys.stderr)
    if not pages:
        print(f"There are no pages in {site}.", file=sys.stderr)
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
