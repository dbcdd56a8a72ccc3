"""Pictures are kept as text; each drawing names the text it was drawn from, so that none is out of date."""

import hashlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SOURCES = sorted((DOCS / "pictures").glob("*.dot"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_picture_was_drawn_from_its_text_as_it_is_now(source: Path) -> None:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    first = source.with_suffix(".svg").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"<!-- drawn from {source.name}, sha256 {digest} -->", "draw it anew: make pictures"


def test_every_picture_is_shown_somewhere() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"])
    assert SOURCES
    assert [source.stem for source in SOURCES if f"pictures/{source.stem}.svg" not in pages] == []
