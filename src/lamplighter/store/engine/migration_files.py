"""The migrations that this program brings with it."""

from importlib.resources import files

from lamplighter.store.engine.schema import Migration


def migrations(dialect: str) -> list[Migration]:
    """Every migration shipped for `dialect`, in order; a file's first line names its `oldest`, as in Level."""
    found = []
    for entry in files("lamplighter.store").joinpath("migrations").iterdir():
        stem, _, ending = entry.name.partition(".")
        if ending == f"{dialect}.sql":
            number, _, name = stem.partition("_")
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(int(number), name, _oldest(text), text))
    return sorted(found)


def _oldest(text: str) -> int:
    first = text.partition("\n")[0]
    return int(first.removeprefix("-- oldest:").strip())
