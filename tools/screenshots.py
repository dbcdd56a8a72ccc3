"""Takes pictures of every page of the web console, light, dark and on a phone, of a city made for it.

It uses the system's Chromium, and writes the page of the documents that shows them all. With names of pictures, such as
`home run`, only those are taken anew.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "browser"))

import demo_city
from browser_city import Town, launched, up
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "console"
GALLERY = HERE.parents[1] / "reference" / "console-pictures.md"
WIDE, PHONE = {"width": 1200, "height": 760}, {"width": 390, "height": 780}


def main(*wanted: str) -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lamp-pictures-") as folder:
        town = demo_city.build(Path(folder) / "lantern-street")
        with up(town) as link, sync_playwright() as playwright, launched(playwright) as browser:
            demo_city.live(town)
            context = browser.new_context()
            context.new_page().goto(link)
            state: Any = context.storage_state()

            @contextmanager
            def looking(size: Mapping[str, int], scheme: Any = "light") -> Iterator[Page]:
                made: Any = {"viewport": size, "color_scheme": scheme, "base_url": town.url, "storage_state": state}
                shown = browser.new_context(**made)
                yield shown.new_page()
                shown.close()

            pages = addresses(town)
            for ending, size, scheme in (("", WIDE, "light"), ("-dark", WIDE, "dark"), ("-phone", PHONE, "light")):
                with looking(size, scheme) as page:
                    for name, path in pages.items():
                        if not wanted or name in wanted:
                            take(page, path, f"{name}{ending}")
            if not wanted or "palette" in wanted:
                with looking(WIDE) as page:
                    take(page, "/calendar", "palette", keys="night")
    GALLERY.write_text(gallery(pages), encoding="utf-8")


def addresses(town: Town) -> dict[str, str]:
    """Every page of the console, by the name of its picture."""

    def newest(automation: str) -> str:
        return str(town.read(f"/runs?automation={automation}&limit=1")["data"][0]["id"])

    item = town.read("/inbox")["data"][0]["id"]
    delivery = town.read("/deliveries")["data"][0]["id"]
    bulk = town.read("/bulk-actions")["data"][0]["id"]
    bead = town.read("/beads")["data"][0]["id"]
    return {
        "home": "/",
        "inbox": "/inbox",
        "inbox-focus": "/inbox/focus",
        "inbox-item": f"/inbox/{item}",
        "runs": "/runs?q=since:2d",
        "run": f"/runs/{newest('nightly-tests')}",
        "run-agent": f"/runs/{newest('triage')}",
        "run-live": f"/runs/{newest('nightly-import')}",
        "automations": "/automations",
        "automation": "/automations/nightly-tests",
        "editor": "/automations/nightly-import/edit",
        "editor-new": "/automations/new",
        "agents": "/agents",
        "agent": "/agents/watchman",
        "calendar": "/calendar",
        "beads": "/beads",
        "bead": f"/beads/{bead}",
        "events": "/events",
        "deliveries": "/deliveries",
        "delivery": f"/deliveries/{delivery}",
        "nodes": "/nodes",
        "cost": "/cost",
        "bulk": "/bulk",
        "bulk-action": f"/bulk/{bulk}",
        "settings": "/settings",
        "people": "/settings/people",
        "audit": "/settings/audit",
        "doctor": "/settings/doctor",
    }


def gallery(pages: Mapping[str, str]) -> str:
    lines = [
        "# Pictures of the console",
        "",
        "Every page of the console of a demo city, light, dark and on a phone.",
        "",
    ]
    for name in pages:
        shown = " ".join(
            f'<a href="../pictures/console/{name}{ending}.png">'
            f'<img src="../pictures/console/{name}{ending}.png" alt="{name}, {word}" width="{width}"></a>'
            for word, ending, width in (("light", "", 320), ("dark", "-dark", 320), ("on a phone", "-phone", 100))
        )
        lines += [f"## {name.replace('-', ' ').capitalize()}", "", shown, ""]
    return "\n".join(lines).rstrip() + "\n"


def take(page: Page, path: str, name: str, *, keys: str = "") -> None:
    """With `keys` they are typed into the palette."""
    page.goto(path)
    page.locator("#freshness.live").wait_for(timeout=120_000)
    page.wait_for_timeout(1000)
    if keys:
        page.keyboard.press("Control+k")
        page.keyboard.type(keys)
        page.locator("#palette .chosen", has_text=keys).wait_for()
    page.screenshot(path=HERE / f"{name}.png")
    shrink(HERE / f"{name}.png")
    print(f"{name}.png, {os.path.getsize(HERE / f'{name}.png') // 1000} kB")  # noqa: PTH202


def shrink(path: Path) -> None:
    """A third of the bytes, with a palette; as it is where Pillow is missing."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as taken:
        few = taken.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
