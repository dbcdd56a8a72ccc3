"""The few SQL fragments that differ between the two databases, and how a statement is rendered for each."""

import re
from dataclasses import dataclass, field

PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_ANY = re.compile(r"\{any:([a-z_]+)\}")


@dataclass(frozen=True)
class Dialect:
    """Statements are written once, with `:name` parameters and `{fragment}` marks; `render` makes them one database's.

    `{any:ids}` compares with the members of a JSON list bound as text, so both databases bind the same value.
    """

    name: str
    fragments: dict[str, str]
    any_of: str
    percent_parameters: bool
    locks_rows: bool
    _rendered: dict[str, str] = field(default_factory=dict, compare=False)

    def render(self, sql: str) -> str:
        ready = self._rendered.get(sql)
        if ready is None:
            ready = self._rendered[sql] = self._render(sql)
        return ready

    def _render(self, sql: str) -> str:
        sql = _ANY.sub(lambda mark: self.any_of.replace("NAME", mark[1]), sql)
        for mark, fragment in self.fragments.items():
            sql = sql.replace("{" + mark + "}", fragment)
        if self.percent_parameters:
            sql = PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
        return sql


SQLITE = Dialect(
    name="sqlite",
    fragments={
        "each": "",
        "bytes_of_body": "length(CAST(body AS BLOB))",
        "for_update": "",  # the one writer already holds the whole database
        "for_share": "",
        "skip_claimed": "",
        "next_run_event": """(
            SELECT coalesce(max(number), 0) + 1 FROM run_events WHERE city_id = :city AND run_id = :run)""",
    },
    any_of="IN (SELECT value FROM json_each(:NAME))",
    percent_parameters=False,
    locks_rows=False,
)
POSTGRES = Dialect(
    name="postgres",
    fragments={
        "each": "",  # nothing for one row; `Write.for_many` puts the values of many rows here
        "bytes_of_body": "octet_length(body)",
        # NO KEY: what an UPDATE itself takes; a plain FOR UPDATE would also stop rows that merely refer to this one.
        "for_update": "FOR NO KEY UPDATE",
        "for_share": "FOR SHARE",
        "skip_claimed": "FOR NO KEY UPDATE SKIP LOCKED",
        "next_run_event": "nextval('run_events_number')",
    },
    # An array, made once: in a join with a list of unknown length the server would often read the whole table.
    any_of="= ANY (ARRAY(SELECT jsonb_array_elements_text(CAST(:NAME AS jsonb))))",
    percent_parameters=True,
    locks_rows=True,
)
