"""The navigation of the docs site, by need and made from the folders: a new page is in it the day it is written."""

from pathlib import Path
from typing import Any

SECTIONS = {
    "Tutorial": ("tutorial/*.md",),
    "How-to": ("how-to/*.md",),
    "Reference": ("reference/*.md", "glossary.md"),
    "Explanation": ("explanation/*.md", "benchmarks.md", "reliability.md"),
    "Decisions": ("decisions/*.md",),
}


def on_config(config: Any) -> Any:
    """Called by mkdocs. Each page is named by its own heading."""
    docs = Path(config["docs_dir"])
    found = [{title: _pages(docs, patterns)} for title, patterns in SECTIONS.items()]
    config["nav"] = ["index.md", *found]
    return config


def _pages(docs: Path, patterns: tuple[str, ...]) -> list[str]:
    return [str(page.relative_to(docs)) for pattern in patterns for page in sorted(docs.glob(pattern))]
