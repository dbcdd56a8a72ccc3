"""The docs site: every page is in its navigation; the check of built pages finds what would be asked of other hosts."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from check_site import requests_of  # noqa: E402  tools are scripts, not a package
from site_navigation import on_config  # noqa: E402


def test_every_page_is_in_the_navigation_once() -> None:
    home, *sections = on_config({"docs_dir": str(ROOT / "docs")})["nav"]
    listed = [home, *(page for section in sections for pages in section.values() for page in pages)]
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/css">', ["//fonts.example/css"]),
        ("a.html", '<link rel="canonical" href="https://docs.example/a.html"><a href="https://x.example">x</a>', []),
        ("a.html", '<img src="../pictures/home.png"><script src="assets/bundle.js"></script>', []),
        (
            "a.css",
            "@import 'https://fonts.example/a.css'; b { background: url(a.svg) }",
            ["https://fonts.example/a.css"],
        ),
        ("a.css", 'b { background: url("//cdn.example/a.svg") }', ["//cdn.example/a.svg"]),
    ],
)
def test_what_a_page_would_ask_of_another_host_is_found(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    page = tmp_path / name
    page.write_text(text)
    assert requests_of(page) == found
