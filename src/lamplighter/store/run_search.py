"""A query of runs as SQL: one term that an index serves, and the others."""

from datetime import timedelta

from lamplighter.kit.ids import oldest_id
from lamplighter.store.engine import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.runs.query import Condition, RunQuery, Word

A_MINUTE = timedelta(minutes=1)
"""An id and its run's time of creation come from one clock, read at different moments."""
MOST_SEARCHED = 1000
COLUMNS = {
    "state": "state",
    "automation": "automation",
    "reason": "reason",
    "rig": "coalesce(rig, '')",
    "trigger": "trigger_kind",
    "action": "action",
    "claimed": "coalesce(assigned_to, '')",
    "continued": "CASE WHEN continued_by IS NULL THEN 'no' ELSE 'yes' END",
}
DRIVING = ("automation", "state")
"""The fields of the indexes runs_of and runs_by_state, the one that narrows more first."""
_LAST = "\U0010ffff"


def compiled(query: "RunQuery") -> tuple[str, str, dict[str, object]]:
    """What an index serves, what is compared in the rows it finds, and the parameters of both."""
    params: dict[str, object] = {}
    driven, where = "", ""
    driving = _driving(query)
    for number, one in enumerate(query.conditions):
        if not isinstance(one.field, str):
            found = _of_payload(one, one.field.path, number, params, is_driving=one is driving)
            driven, where = (driven + found, where) if one is driving else (driven, where + found)
        elif one is driving:
            driven += f" AND {COLUMNS[one.field]} = :v{number}_0"
            params[f"v{number}_0"] = one.words[0].text
        else:
            column = COLUMNS[one.field]
            parts = [_compared(column, word, f"v{number}_{n}", params) for n, word in enumerate(one.words)]
            where += f" AND {'NOT ' if one.negated else ''}({' OR '.join(parts)})"
    for number, bound in enumerate(query.costs):
        where += f" AND coalesce(cost, 0) {bound.sign.value} :cost{number}"
        params[f"cost{number}"] = bound.dollars
    if query.since is not None:
        driven += " AND id >= :since_id AND created_at >= :since"
        params |= {"since_id": oldest_id("run", query.since - A_MINUTE), "since": stamp(query.since)}
    if query.until is not None:
        driven += " AND created_at < :until"
        params["until"] = stamp(query.until)
    return driven, where, params


def _of_payload(one: "Condition", path: str, number: int, params: dict[str, object], *, is_driving: bool) -> str:
    """The primary key of run_fields finds the newest runs that have a value, or tells of one run whether it has it."""
    params[f"p{number}"] = path
    parts = [_compared("value", word, f"v{number}_{n}", params) for n, word in enumerate(one.words)]
    where = f"city_id = :city AND path = :p{number} AND ({' OR '.join(parts)})"
    if is_driving:
        newest = "AND run_id < :before ORDER BY run_id DESC LIMIT :reach"
        return f" AND id IN (SELECT run_id FROM run_fields WHERE {where} {newest})"
    told = "NOT EXISTS" if one.negated else "EXISTS"
    return f" AND {told} (SELECT 1 FROM run_fields WHERE {where} AND run_id = looked.id)"


def _driving(query: "RunQuery") -> "Condition | None":
    plain = [one for one in query.conditions if not one.negated and len(one.words) == 1 and not one.words[0].is_prefix]
    for one in plain:
        if not isinstance(one.field, str):
            return one
    for field in DRIVING:
        for one in plain:
            if one.field == field:
                return one
    return None


def _compared(column: str, word: "Word", name: str, params: dict[str, object]) -> str:
    """A range instead of LIKE for a beginning: it needs no escaping, and letters are not folded."""
    params[name] = word.text
    if not word.is_prefix:
        return f"{column} = :{name}"
    params[f"{name}_end"] = word.text + _LAST
    return f"({column} >= :{name} AND {column} < :{name}_end)"
