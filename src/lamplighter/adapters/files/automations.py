"""Reads `<layer>/automations/<name>/automation.toml` of every layer; reports an unreadable file and goes on."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.toml import text_of
from lamplighter.domain.automations.layers import Definitions, Found, Layer, Override, resolve
from lamplighter.kit import toml_text
from lamplighter.kit.records import record

FOLDER = "automations"
FILE = "automation.toml"
LARGEST_FILE = 1_000_000


@record
class LayerDirectory:
    """A formula layer on disk; `rig` is set for a layer of a rig."""

    path: Path
    rig: str | None = None


def scan(
    directories: Iterable[LayerDirectory], *, skip: Iterable[str] = (), overrides: Iterable[Override] = ()
) -> Definitions:
    """`directories` go from lowest to highest priority. A directory that does not exist is an empty layer."""
    layers = [Layer(tuple(_files(one.path)), one.rig) for one in directories]
    return resolve(layers, skip=skip, overrides=overrides)


def _files(layer: Path) -> Iterator[Found]:
    folder = layer / FOLDER
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Found(FOLDER, str(folder), None, f"cannot be listed: {error.strerror}")
        return
    for name in names:
        path = (folder / name / FILE).absolute()
        if path.exists():
            yield _read(name, path)


def _read(name: str, path: Path) -> Found:
    try:
        return Found(name, str(path), _parsed(path))
    except UnicodeDecodeError:
        return Found(name, str(path), None, "is not valid TOML: it is not UTF-8 text")
    except ValueError as error:
        return Found(name, str(path), None, f"is not valid TOML: {error}")
    except OSError as error:
        return Found(name, str(path), None, f"cannot be read: {error.strerror or error}")


def _parsed(path: Path) -> dict[str, Any]:
    return toml_text.parse(text_read(path))


def text_read(path: Path) -> str:
    """Raises OSError, UnicodeDecodeError."""
    if not path.is_file():
        raise OSError(0, "it is not a file")
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(0, f"it is larger than {LARGEST_FILE} bytes")
    return text_of(content)
