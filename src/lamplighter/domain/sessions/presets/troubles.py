"""Recognises why a program could not reach its model: a missing or expired login, or a limit of its provider.

Only what the program itself says counts: its errors, and lines that are not part of its stream. What it quotes, such as
the output of a tool, does not, and neither does an error after which it went on with its work.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from enum import StrEnum

from lamplighter.domain.sessions.presets.lines import json_line, without_escapes
from lamplighter.domain.sessions.presets.model import Login, Pause, Preset
from lamplighter.domain.sessions.presets.reset_times import reset_time
from lamplighter.domain.sessions.transcript import Failed, Parsed, ToolEnded, ToolStarted, Usage

LONGEST = 500
LONGEST_LINE = 2000
MOST_HEARD = 50


class TroubleKind(StrEnum):
    LOGIN = "login"
    LIMIT = "provider_limit"


@dataclass(frozen=True)
class Trouble:
    """`lifts_at` is when the limit is lifted, as far as the program tells."""

    kind: TroubleKind
    message: str
    lifts_at: datetime | None = None


# A status stands by itself: the same digits in a path, a version or an id say nothing.
_STATUS = r"(?<![\w/\\.-]){}(?![\w/\\-])"
_LOGIN = re.compile(
    _STATUS.format(401) + r"|unauthori[sz]ed|authentication[ _](?:error|failed)|invalid authentication|"
    r"(?:invalid|incorrect|missing|expired)\W{1,3}(?:x-)?api[ -]?key|"
    r"api[ -]?key (?:is )?(?:not valid|invalid|missing|expired)|"
    r"API_KEY_INVALID|not (?:logged|signed) in|please (?:log|sign) in|please run /login|login (?:required|expired)|"
    r"(?:oauth|access|refresh) token (?:has |is |was )?(?:been )?(?:expired|revoked|invalid|already used)|"
    r"session (?:has )?expired|no (?:api key|auth(?:entication)? (?:method|credentials?)|provider configured)|"
    r"set an auth method",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    _STATUS.format(429) + r"|too many requests|rate[ _-]?limit|usage[ _]limit|"
    r"(?:hit|reached|exceeded) your (?:\w+ )?limit|"
    r"exceeded your (?:current|monthly|daily)|exhausted your|quota (?:exceeded|exhausted|reached)|insufficient_quota|"
    r"RESOURCE_EXHAUSTED|credit balance is too low|out of (?:extra )?(?:usage|credits)",
    re.IGNORECASE,
)


def recognise(
    preset: Preset, output: str, exit_status: int | None, now: datetime, zone: tzinfo | None = None
) -> Trouble | None:
    """What kept the program from its model, by the end of its output and its exit status; None for anything else.

    `zone` is the time zone in which the program tells times of day.
    """
    heard = Heard(preset)
    for line in output.splitlines():
        heard.parse(line)
    found = heard.trouble(now, zone)
    if found is None and preset.login is not None and exit_status in preset.login.exits:
        return Trouble(TroubleKind.LOGIN, f"{preset.title} ended with exit status {exit_status}")
    return found


@dataclass
class Heard:
    """What a program said of failures since its model last answered, heard line by line."""

    preset: Preset
    said: list[str] = field(default_factory=list)
    ends_with_failure: bool = False
    """Whether a failure is the last that its stream told."""

    def parse(self, line: str) -> Parsed:
        parsed = self.preset.parse(line)
        wrong = [event.message for event in parsed.events if isinstance(event, Failed)]
        if parsed.events:
            self.ends_with_failure = bool(wrong)
        if not wrong and _was_answered(parsed):
            self.said.clear()
        self.said += wrong
        if json_line(line) is None and _is_own(line) and not self._is_framed(line):
            self.said.append(without_escapes(line).strip())
        del self.said[:-MOST_HEARD]
        return parsed

    def trouble(self, now: datetime, zone: tzinfo | None = None) -> Trouble | None:
        """The trouble that these failures tell of; a limit comes first, for some tell it as a refusal."""
        login = self.preset.login
        if login is None or not self.said:
            return None
        for kind, pattern in ((TroubleKind.LIMIT, _LIMIT), (TroubleKind.LOGIN, _login_of(login))):
            found = [one for one in self.said if pattern.search(one)]
            if found:
                lifts = reset_time("\n".join(found), now, zone) if kind is TroubleKind.LIMIT else None
                return Trouble(kind, _short(found[-1], pattern), lifts)
        return None

    def _is_framed(self, line: str) -> bool:
        frames = "" if self.preset.login is None else self.preset.login.frames
        return bool(frames) and without_escapes(line).lstrip().startswith(frames)


def waits_for(pause: Pause, zone: tzinfo | None = None, *, now: datetime) -> Trouble | None:
    """The limit that a program waits for in silence; None if it waits for anything else, or not any more."""
    if pause.until <= now or not _LIMIT.search(pause.message):
        return None
    told = reset_time(pause.message, now, zone)
    lifts = pause.until if told is None else max(told, pause.until)
    return Trouble(TroubleKind.LIMIT, _short(pause.message, _LIMIT), lifts)


def _was_answered(parsed: Parsed) -> bool:
    return any(
        isinstance(event, ToolStarted | ToolEnded) or (isinstance(event, Usage) and event.output_tokens > 0)
        for event in parsed.events
    )


def _is_own(line: str) -> bool:
    """Whether a line outside the stream is the program's own, and not the rest of a long line that was cut."""
    return bool(line.strip()) and len(line) <= LONGEST_LINE and not line.rstrip().endswith("}")


def _login_of(login: Login) -> re.Pattern[str]:
    own = login.says
    return re.compile("|".join((_LOGIN.pattern, *own)), re.IGNORECASE) if own else _LOGIN


def _short(text: str, pattern: re.Pattern[str]) -> str:
    """The text, or the part of a long one around what was recognised."""
    plain = " ".join(text.split())
    if len(plain) <= LONGEST:
        return plain
    found = pattern.search(plain)
    start = max((found.start() if found else 0) - LONGEST // 2, 0)
    return plain[start : start + LONGEST]
