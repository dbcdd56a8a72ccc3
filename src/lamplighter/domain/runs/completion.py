"""The completion contract: an agent's run succeeds only by reporting it; accept, answer a replay, or refuse it."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from lamplighter.domain.runs.model import ACTIVE, Run, RunState
from lamplighter.kit.canonical import canonical
from lamplighter.kit.errors import Conflict, LampError, UsageError
from lamplighter.kit.records import record

TOOL = "automation_complete"
ALIAS = "automation.complete"
LONGEST_SUMMARY = 100_000
LONGEST_REF = 2_000
MOST_ENTRIES = 200
ASK_TOOL = "automation_ask"
LONGEST_QUESTION = 8_000
MOST_CHOICES = 20

_RUN_ID = re.compile(r"run_[0-9a-hjkmnp-tv-z]{26}")
_COMPLETION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,199}")
_UNKEEPABLE = re.compile("[\0\ud800-\udfff]")  # what a database cannot hold as text


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"

    @property
    def state(self) -> RunState:
        return RunState(self.value)


@record
class Completion:
    """An agent's report about its own run. Contents are compared as canonical JSON, so key order does not matter."""

    run: str
    completion_id: str
    outcome: Outcome
    summary: str = ""
    citations: tuple[Any, ...] = ()
    diff_ref: str = ""
    test_report_ref: str = ""
    side_effect_refs: tuple[Any, ...] = ()
    question: Mapping[str, Any] | None = None
    """What it asks a person; only with the outcome `needs_human`."""

    def as_json(self) -> dict[str, Any]:
        asks = {} if self.question is None else {"question": dict(self.question)}
        return asks | {
            "run_id": self.run,
            "completion_id": self.completion_id,
            "outcome": self.outcome.value,
            "summary_markdown": self.summary or None,
            "citations": list(self.citations),
            "diff_ref": self.diff_ref or None,
            "test_report_ref": self.test_report_ref or None,
            "side_effect_refs": list(self.side_effect_refs),
        }

    @property
    def content(self) -> str:
        return canonical(self.as_json())


class CompletionInvalid(UsageError):
    def __init__(self, problems: list[str], tool: str = TOOL) -> None:
        what = "completion" if tool == TOOL else "question"
        super().__init__(
            f"The {what} was not recorded: {'; '.join(problems)}.",
            hint=f"Mend the arguments and call {tool} again.",
        )
        self.problems = tuple(problems)


class CompletionRefused(Conflict):
    """The completion was refused and the run's state stays as it was; `code` names the cause for programs."""

    code: ClassVar[str] = "refused"


class SessionMismatch(CompletionRefused):
    code = "session_mismatch"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} belongs to another session.", hint="Complete the run that your own prompt named."
        )


class CompletionConflict(CompletionRefused):
    code = "completion_conflict"

    def __init__(self, run: Run, *, same_id: bool) -> None:
        what = "with other content" if same_id else "under another completion id"
        super().__init__(
            f"Run {run.id} is already completed {what}; it stays {run.state}.",
            hint="Nothing needs to be done; a completion is final.",
        )


class BeingVerified(CompletionRefused):
    code = "being_verified"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} claimed its success before, and that is being verified.",
            hint="Stop here: if it does not hold, you are told what is wrong and go on.",
        )


class RoundOver(CompletionRefused):
    code = "round_over"

    def __init__(self, run: Run, number: int) -> None:
        super().__init__(
            f"Round {number} of run {run.id} is over: what was reported in it was not verified.",
            hint=f"Report under the completion id of round {run.round}, which its message names.",
        )


class NoPlan(CompletionRefused):
    code = "no_plan"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} is to make a plan, and `summary_markdown` is empty.",
            hint=f"Put the whole plan into `summary_markdown` and call {TOOL} again.",
        )


class NotAnAgents(CompletionRefused):
    code = "not_an_agents_run"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} is no agent's: it ends when its command or its formula does.",
            hint=f"`lamp run cancel {run.id}` ends it now.",
        )


class TooLate(CompletionRefused):
    code = "too_late"

    def __init__(self, run: Run) -> None:
        why = f" ({run.reason})" if run.reason else ""
        super().__init__(
            f"Run {run.id} had already ended as {run.state}{why}; its record keeps the first report that came after.",
            hint=f"Stop working on it. `lamp run retry {run.id}` starts a new run.",
        )


class NotStarted(CompletionRefused):
    code = "not_started"

    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id} is only {run.state}.", hint="Only a running run can be completed.")


@record
class Recorded:
    """The completion that is already recorded for a run."""

    completion_id: str
    content: str
    round: int = 1


@record
class Accept:
    to: RunState


@record
class Propose:
    """The plan is recorded, and the run ends: a person decides about it."""


@record
class Verify:
    """The claim of success is recorded and will be verified; the run goes on until then."""


@record
class Replay:
    """The same completion was recorded before: give the same answer, write nothing. `round` is its round."""

    round: int | None = None


@record
class Late:
    """Refused, but the report is recorded in the run's timeline; raising inside the transaction would lose it."""

    error: TooLate


@record
class Refuse:
    error: CompletionRefused


Judgement = Accept | Propose | Verify | Replay | Late | Refuse


@record
class Claims:
    """The claims of success of a run whose success is verified, of all its rounds."""

    recorded: tuple[Recorded, ...] = ()


def judge(
    run: Run,
    recorded: Recorded | None,
    completion: Completion,
    *,
    session: str | None = None,
    claims: Claims | None = None,
    plans: bool = False,
) -> Judgement:
    """Decide about a completion. `session` is the caller's session, if it has one; `claims` is None for a run whose
    success is not verified; `plans` says that a success of the run is a plan.
    """
    before = _claimed_before(run, completion, claims)
    if before is not None:
        return before
    if session and run.session_id and session != run.session_id:
        return Refuse(SessionMismatch(run))
    if recorded is not None:
        same_id = recorded.completion_id == completion.completion_id
        if same_id and recorded.content == completion.content:
            return Replay()
        return Refuse(CompletionConflict(run, same_id=same_id))
    if run.state is RunState.RUNNING:
        return _judge_running(run, completion, verified=claims is not None, plans=plans)
    return Refuse(NotStarted(run)) if run.state in ACTIVE else Late(TooLate(run))


def _judge_running(run: Run, completion: Completion, *, verified: bool, plans: bool) -> Judgement:
    if run.pending is not None:
        return Refuse(BeingVerified(run))
    if plans and completion.outcome is Outcome.SUCCEEDED:
        return Propose() if completion.summary else Refuse(NoPlan(run))
    return Verify() if verified and completion.outcome is Outcome.SUCCEEDED else Accept(completion.outcome.state)


def _claimed_before(run: Run, completion: Completion, claims: Claims | None) -> Judgement | None:
    """The answer of an earlier round to a completion with its id; None for one of the present round."""
    for one in claims.recorded if claims is not None else ():
        if one.completion_id == completion.completion_id:
            if one.content == completion.content:
                return Replay(one.round)
            over = not run.ended and one.round < run.round
            return Refuse(RoundOver(run, one.round) if over else CompletionConflict(run, same_id=True))
    return None


def error_of(judgement: Judgement) -> LampError | None:
    """The error to raise to the caller after the transaction has committed; None if there is none."""
    return judgement.error if isinstance(judgement, Late | Refuse) else None


def parse(args: Mapping[str, Any]) -> Completion:
    """A completion from an agent's arguments. Raises CompletionInvalid with every problem.

    Quotes around ids are removed, because some programs add them; unknown arguments are ignored, because some programs
    add their own to every tool call.
    """
    problems: list[str] = []
    read = _Reader(args, problems.append)
    completion = Completion(
        run=read.id("run_id", "runId", _RUN_ID),
        completion_id=read.id("completion_id", "completionId", _COMPLETION_ID),
        outcome=read.outcome(),
        summary=read.text("summary_markdown", "summaryMarkdown", LONGEST_SUMMARY),
        citations=read.entries("citations", "citations"),
        diff_ref=read.text("diff_ref", "diffRef", LONGEST_REF),
        test_report_ref=read.text("test_report_ref", "testReportRef", LONGEST_REF),
        side_effect_refs=read.entries("side_effect_refs", "sideEffectRefs"),
    )
    if problems:
        raise CompletionInvalid(problems)
    return completion


def parse_question(args: Mapping[str, Any]) -> Completion:
    """A completion that asks a person something, from an agent's arguments. Raises CompletionInvalid."""
    problems: list[str] = []
    read = _Reader(args, problems.append)
    run = read.id("run_id", "runId", _RUN_ID)
    text = read.text("question", "question", LONGEST_QUESTION)
    if not text:
        problems.append("`question` is missing")
    choices = read.entries("choices", "choices")
    if len(choices) > MOST_CHOICES or not all(isinstance(one, str) and one.strip() for one in choices):
        problems.append(f"`choices` takes at most {MOST_CHOICES} texts")
    without = read.text("without_answer", "withoutAnswer", LONGEST_REF)
    summary = read.text("summary_markdown", "summaryMarkdown", LONGEST_SUMMARY)
    if problems:
        raise CompletionInvalid(problems, ASK_TOOL)
    question = {"text": text, "choices": list(choices), "without_answer": without or None}
    return Completion(run, f"run:{run}:question", Outcome.NEEDS_HUMAN, summary, question=question)


def as_question(asked: Completion) -> dict[str, Any]:
    """The arguments that `parse_question` makes it from."""
    told = dict(asked.question or {})
    question = {"question": told.get("text"), "choices": list(told.get("choices") or ())}
    without = {"without_answer": told.get("without_answer")} if told.get("without_answer") else {}
    return {"run_id": asked.run, "summary_markdown": asked.summary} | question | without


def run_id(text: str) -> str | None:
    """`text` as a run id, without the quotes and spaces that programs put around it; None if it is no run id."""
    bare = _bare(text)
    return bare if _RUN_ID.fullmatch(bare) else None


class _Reader:
    def __init__(self, args: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        self._args = args
        self._tell = tell

    def id(self, name: str, alias: str, pattern: re.Pattern[str]) -> str:
        value = self._value(name, alias)
        if value is None or value == "":
            self._tell(f"`{name}` is missing")
            return ""
        text = _bare(value) if isinstance(value, str) else ""
        if not pattern.fullmatch(text):
            self._tell(f"`{name}` is not the one from your instructions")
        return text

    def outcome(self) -> Outcome:
        value = self._args.get("outcome")
        text = _bare(value).lower() if isinstance(value, str) else ""
        found = next((one for one in Outcome if one.value == text), None)
        if found is None:
            self._tell(f"`outcome` must be one of {', '.join(Outcome)}")
        return found or Outcome.FAILED

    def text(self, name: str, alias: str, longest: int) -> str:
        value = self._value(name, alias)
        if value is None:
            return ""
        if not isinstance(value, str) or _UNKEEPABLE.search(value):
            self._tell(f"`{name}` must be text")
            return ""
        if len(value) > longest:
            self._tell(f"`{name}` has {len(value)} characters; at most {longest} are kept")
        return value.strip()

    def entries(self, name: str, alias: str) -> tuple[Any, ...]:
        """A list of texts or objects; a single one counts as a list of one."""
        value = self._value(name, alias)
        if value is None or value == "":
            return ()
        found = [value] if isinstance(value, str | dict) else value
        if not isinstance(found, list | tuple) or not all(isinstance(one, str | dict) for one in found):
            self._tell(f"`{name}` must be a list of texts or objects")
            return ()
        if len(found) > MOST_ENTRIES:
            self._tell(f"`{name}` has {len(found)} entries; at most {MOST_ENTRIES} are kept")
        return self._keepable(name, tuple(found))

    def _keepable(self, name: str, found: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            size = max((len(canonical(one)) for one in found), default=0)
            sound = _sound(found)
        except (ValueError, TypeError, RecursionError):
            size, sound = 0, False
        if not sound:
            self._tell(f"`{name}` holds what cannot be kept as text")
        elif size > LONGEST_REF:
            self._tell(f"`{name}` has an entry of {size} characters; at most {LONGEST_REF} are kept")
        return found if sound else ()

    def _value(self, name: str, alias: str) -> Any:
        return self._args[name] if self._args.get(name) is not None else self._args.get(alias)


def _sound(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_sound(key) and _sound(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return all(_sound(one) for one in value)
    return not (isinstance(value, str) and _UNKEEPABLE.search(value))


def _bare(text: str) -> str:
    return text.strip().strip("\"'`").strip()
