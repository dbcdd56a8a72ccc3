"""Lists as files for other programs."""

import csv
import io
from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(cells: Iterable[str]) -> str:
    """A line of CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    line = io.StringIO()
    csv.writer(line).writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return line.getvalue()
