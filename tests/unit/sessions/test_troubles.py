"""Why a program could not reach its model, by what the real programs print, and when a limit is lifted."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.goose import pause
from lamplighter.domain.sessions.presets.reset_times import reset_time
from lamplighter.domain.sessions.presets.troubles import Heard, Trouble, TroubleKind, recognise, waits_for

NOW = datetime(2026, 11, 17, 21, 40, tzinfo=UTC)
FIVE = datetime(2026, 11, 18, 5, 0, tzinfo=UTC)
LIMIT = "Usage limit reached, resets at 2026-11-18T05:00:00Z"


def line(**keys: object) -> str:
    return json.dumps(keys)


# What the programs printed when their model service answered 401, or when there was no login at all.
REFUSED = {
    "claude": line(type="result", is_error=True, api_error_status=401, result="Invalid API key · Fix external API key"),
    "claude none": line(type="result", is_error=True, result="Not logged in · Please run /login"),
    "codex": line(
        type="turn.failed",
        error={"message": "unexpected status 401 Unauthorized: Incorrect API key provided: dummy., url: http://h/v1"},
    ),
    "goose": line(type="error", error="Ran into this error: Authentication error: Status: 401 Unauthorized."),
    "goose none": "\n  error: No provider configured. Run 'goose configure' first.\n",
    "gemini": line(
        type="result",
        status="error",
        error={
            "message": '[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid one."}}]'
        },
    ),
    "gemini none": "Please set an Auth method in your /h/.gemini/settings.json or specify one of the variables",
    "opencode": line(
        type="error", error={"name": "APIError", "data": {"message": "Forbidden to dummy.", "statusCode": 401}}
    ),
    "qwen": line(type="result", is_error=True, error={"message": "[API Error: 401 Incorrect API key provided]"}),
    "qwen none": line(
        type="result", is_error=True, error={"message": "No auth type is selected. Please configure one"}
    ),
    "copilot": line(type="session.error", data={"message": "Authentication failed with provider (HTTP 401)."}),
    "copilot none": "Error: No authentication information found.\n",
    "cline": line(type="error", message="Incorrect API key provided: dummy."),
    # After its error it shows the conversation in a frame, with its prompt of 300 lines.
    "openhands": line(
        kind="ConversationErrorEvent",
        code="AuthenticationError",
        detail="litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided.",
    )
    + "\n\x1b[36m╭─\x1b[0m Agent ─\n"
    + "\x1b[36m│\x1b[0m - Embedding hardcoded auth tokens, credentials, or API keys in config \x1b[36m│\x1b[0m\n" * 300
    + "╰──\nGoodbye!\n",
}

# What they printed when it answered 429 with the time at which the limit is lifted.
LIMITED = {
    "claude": line(type="result", is_error=True, result=f"API Error: Request rejected (429) · {LIMIT}"),
    "codex": line(
        type="turn.failed",
        error={"message": "You've hit your usage limit. Upgrade to Pro, or try again at Nov 18th, 2026 5:00 AM."},
    ),
    "goose": line(
        type="message",
        message={
            "role": "assistant",
            "content": [{"type": "text", "text": f"Ran into this error: Rate limit exceeded: {LIMIT}."}],
        },
    )
    + "\n"
    + line(type="complete", total_tokens=0, input_tokens=0, output_tokens=0),
    "gemini": line(
        type="result",
        status="error",
        error={"message": "[API Error: You exceeded your current quota. Please retry in 26400s.]"},
    ),
    "opencode": line(type="error", error={"name": "APIError", "data": {"message": LIMIT, "statusCode": 429}}),
    "qwen": f"Retrying in 60s (attempt 1/10): [API Error: 429 {LIMIT}]",
    "copilot": line(type="session.error", data={"message": f"Failed; retried 5 times. Last error: 429 {LIMIT}"}),
    "cline": line(type="agent_event", event={"type": "error", "error": {"name": "Error", "message": LIMIT}}),
    "openhands": line(
        kind="ConversationErrorEvent",
        code="LLMRateLimitError",
        detail=f"litellm.RateLimitError: RateLimitError: OpenAIException - {LIMIT}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_login_that_is_refused_is_recognised(case: str) -> None:
    found = recognise(PRESETS[case.split(maxsplit=1)[0]], REFUSED[case], 1, NOW)
    assert found is not None
    assert (found.kind, found.lifts_at) == (TroubleKind.LOGIN, None)
    assert found.message


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_of_the_provider_is_recognised_with_the_time_it_is_lifted(name: str) -> None:
    found = recognise(PRESETS[name], LIMITED[name], 1, NOW)
    assert found is not None
    assert (found.kind, found.lifts_at) == (TroubleKind.LIMIT, FIVE)


def test_an_exit_status_may_say_it_alone() -> None:
    assert recognise(PRESETS["gemini"], "", 41, NOW) == Trouble(
        TroubleKind.LOGIN, "Gemini CLI ended with exit status 41"
    )
    assert recognise(PRESETS["gemini"], "", 1, NOW) is None


QUOTED = {
    "what a tool gave": line(
        type="user",
        message={"content": [{"type": "tool_result", "tool_use_id": "t", "content": "HTTP 401 Unauthorized"}]},
    ),
    "what the model said": line(
        type="assistant", message={"content": [{"type": "text", "text": "The server answers 429 too many requests."}]}
    ),
    "the rest of a line that was cut": 'unauthorized 401","session_id":"x"}',
}


@pytest.mark.parametrize("case", QUOTED)
def test_what_a_program_only_quotes_is_no_trouble_of_its_own(case: str) -> None:
    ended = line(type="result", is_error=False, result="done", usage={"input_tokens": 5, "output_tokens": 7})
    assert recognise(PRESETS["claude"], f"{QUOTED[case]}\n{ended}", 0, NOW) is None


def test_an_error_after_which_it_went_on_with_its_work_is_forgotten() -> None:
    heard = Heard(PRESETS["codex"])
    heard.parse(line(type="error", message="Reconnecting... 1/5 (last status: 429 Too Many Requests)"))
    assert heard.trouble(NOW) is not None
    heard.parse(line(type="item.started", item={"id": "i", "type": "command_execution", "command": "ls"}))
    assert heard.trouble(NOW) is None


@pytest.mark.parametrize(
    ("text", "is_heard"),
    [
        ("error: usage limit reached", True),
        ('the rest of a long line: usage limit reached"}', False),
        ("x" * 100_000 + " usage limit reached", False),
        (line(type="item.completed", item={"type": "agent_message", "text": "usage limit reached"}), False),
    ],
)
def test_only_the_program_s_own_lines_tell_of_its_limits(text: str, *, is_heard: bool) -> None:
    heard = Heard(PRESETS["codex"])
    heard.parse(text)
    assert (heard.trouble(NOW) is not None) is is_heard


# What goose 1.52 wrote into its log when its model answered 429 with `retry-after: 7200`.
LOGGED = (
    "Provider request failed with status: 429 Too Many Requests. Payload: Some(Object {})",
    'Request failed, retrying (1/3): RateLimitExceeded { details: "Please try again in 7200s.", retry_delay: None }',
    "Backing off for 3600s before retry",
)


def logged(*messages: str, at: str = "2026-11-17T21:39:47.802779Z") -> str:
    return "\n".join(line(timestamp=at, level="WARN", fields={"message": one}, target="t") for one in messages)


def test_what_goose_waits_for_is_read_from_its_log() -> None:
    found = pause(logged("begun") + "\nno JSON\n" + logged(*LOGGED))
    assert found is not None
    assert found.until == datetime(2026, 11, 17, 22, 39, 47, 802779, tzinfo=UTC)
    trouble = waits_for(found, now=NOW)
    assert trouble is not None
    assert (trouble.kind, trouble.lifts_at) == (TroubleKind.LIMIT, NOW + timedelta(seconds=7200))
    assert waits_for(found, now=found.until) is None, "it has asked again since"


@pytest.mark.parametrize(
    "log",
    [
        "",
        logged(LOGGED[0], LOGGED[1]),
        logged(LOGGED[2], at="yesterday"),
        logged(LOGGED[2], at="2026-11-17T21:39:47"),
        logged("Request failed, retrying (1/3): ServerError", LOGGED[2]),
    ],
    ids=["empty", "no wait", "no time", "no zone", "another reason"],
)
def test_what_is_no_wait_for_a_limit_is_none(log: str) -> None:
    found = pause(log)
    assert found is None or waits_for(found, now=NOW) is None


def test_a_short_wait_in_milliseconds_is_read_too() -> None:
    found = pause(logged(LOGGED[1], "Backing off for 950.5ms before retry"))
    assert found is not None
    assert found.until - datetime(2026, 11, 17, 21, 39, 47, 802779, tzinfo=UTC) == timedelta(milliseconds=950.5)


def test_an_error_is_the_last_that_a_program_told_until_it_tells_something_else() -> None:
    heard = Heard(PRESETS["codex"])
    heard.parse(line(type="error", message="Reconnecting... 1/5 (last status: 429 Too Many Requests)"))
    heard.parse(line(type="turn.started"))
    assert heard.ends_with_failure
    heard.parse(line(type="item.completed", item={"type": "agent_message", "text": "Here I am."}))
    assert not heard.ends_with_failure


def test_what_a_shell_prints_is_never_taken_for_its_login() -> None:
    assert recognise(PRESETS["shell"], "401 Unauthorized\nusage limit reached", 1, NOW) is None


BERLIN = ZoneInfo("Europe/Berlin")
RESETS = {
    "resets at 2026-11-18T05:00:00Z": FIVE,
    "resets at 2026-11-18T06:00:00+01:00": FIVE,
    "Claude AI usage limit reached|1794978000": FIVE,
    '{"type":"usage_limit_reached","resets_at":1794978000}': FIVE,
    '"resets_in_seconds": 26400': FIVE,
    "You've hit your limit · resets 5am (UTC)": FIVE,
    "You've hit your limit · resets 6am (Europe/Berlin)": FIVE,
    "limit reached, resets 6:00am": FIVE,  # of the machine's own zone
    "try again at Nov 18th, 2026 6:00 AM.": FIVE,
    "try again at 6:00 AM": FIVE,
    "Please try again in 20s.": NOW + timedelta(seconds=20),
    "Please try again in 1m30s.": NOW + timedelta(seconds=90),
    "Please retry in 34.5s.": NOW + timedelta(seconds=34.5),
    "try again in 3 days 4 hours 2 minutes": NOW + timedelta(days=3, hours=4, minutes=2),
    "Suggested retry after 25000s.": NOW + timedelta(seconds=25000),
    "retry-after: 120": NOW + timedelta(seconds=120),
    "Rate limit reached for gpt-5 on tokens per min. Limit 30000, used 29000": None,
    "exceeded retry limit, last status: 429 Too Many Requests": None,
    "resets at 2019-01-01T00:00:00Z": None,  # long over
    "try again in 99999999999999 days": None,
    "resets at 2026-13-45T99:99:99Z and 25:61pm (Nowhere/Land)": None,
    "": None,
}


@pytest.mark.parametrize("text", RESETS)
def test_the_time_at_which_a_limit_is_lifted_is_read(text: str) -> None:
    assert reset_time(text, NOW, BERLIN) == RESETS[text]


@pytest.mark.parametrize(
    "text",
    ["resets at 0001-01-01T00:00:00", "resets at 0001-01-01T00:00:00+14:00", "resets at 9999-12-31T23:59:59-12:00",
     "resets Dec 31, 9999 11:59 PM", "try again in " + "9" * 400 + " days"],
)  # fmt: skip
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_a_time_at_the_end_of_all_times_is_none(text: str, zone: str) -> None:
    assert reset_time(text, NOW, ZoneInfo(zone)) is None


@pytest.mark.parametrize("number", [401, 429])
def test_the_digits_of_a_status_in_a_path_or_a_version_are_none(number: int) -> None:
    for said in (
        f"WARNING: refusing (/tmp/run-{number}/home)",
        f"cannot read /srv/{number}/x",
        f"tool v1.{number} is old",
    ):
        assert recognise(PRESETS["codex"], said, 1, NOW) is None, said
    for said in (f"HTTP {number}", f"status={number}", f"error ({number}): no", f"{number} at /v1/messages"):
        assert recognise(PRESETS["codex"], said, 1, NOW) is not None, said
