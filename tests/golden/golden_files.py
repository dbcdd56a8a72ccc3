"""Golden files: what was captured is compared with what is on record, or becomes the record when that is asked for."""

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WRITING = bool(os.environ.get("WRITE_GOLDENS"))
HINT = "`make goldens` writes the new ones; look at the difference before you keep it."


def check(folder: str, captured: Mapping[str, Any]) -> None:
    """Every file of the folder must be captured and be the same; WRITE_GOLDENS=1 writes them instead."""
    if WRITING:
        _write(HERE / folder, captured)
        return
    found = "\n".join(differences(HERE / folder, captured))
    assert not found, f"{found}\n{HINT}"


def differences(folder: Path, captured: Mapping[str, Any]) -> Iterator[str]:
    on_record = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    for name in sorted(on_record.keys() | captured.keys()):
        if name not in captured:
            yield f"{folder.name}/{name}.json is on record and was not captured."
        elif name not in on_record:
            yield f"{folder.name}/{name}.json is not on record."
        else:
            yield from _diff(f"{folder.name}/{name}.json", on_record[name], _text(captured[name]))


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"on record: {name}", "now", lineterm="", n=3)
    return iter(list(lines))


def _write(folder: Path, captured: Mapping[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        if path.stem not in captured:
            path.unlink()
    for name, value in captured.items():
        (folder / f"{name}.json").write_text(_text(value), encoding="utf-8")


def _text(value: Any) -> str:
    """The order of keys is of no account; that of lists is."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
