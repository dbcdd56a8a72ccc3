"""The work of one process on one run, as a small state machine: what happened goes in, the next step comes out.

`starting → following → finishing → done`. Where an agent's claim of success is verified, `verifying` comes after
`following`, and `starting` again after it where the claim did not hold. The last steps stand in a plan in which each
step occurs at most once: the end is recorded once, and the run's processes, worktree and files are let go of once.
"""

from dataclasses import dataclass
from enum import StrEnum

from lamplighter.domain.runs.model import Run
from lamplighter.kit.records import record


class Phase(StrEnum):
    STARTING = "starting"
    """Nothing of the run's work is on record yet: its precheck runs, or its session is being made."""
    FOLLOWING = "following"
    """Its command or session is under way."""
    VERIFYING = "verifying"
    """Its agent claims success; that is being verified."""
    FINISHING = "finishing"
    """The work is over here; the steps that are left stand in the plan."""
    DONE = "done"


AT_WORK = frozenset({Phase.STARTING, Phase.FOLLOWING, Phase.VERIFYING})


class Step(StrEnum):
    START = "start"
    FOLLOW = "follow"
    VERIFY = "verify"
    """Let the program end, run the command that verifies, and record its verdict."""
    LAST_WORDS = "last_words"
    """Let the program of a completed run end by itself, within a limit."""
    STOP = "stop"
    """End the run's processes. A run that cannot be stopped is left as it is, for the next process to adopt."""
    TRY_TO_STOP = "try_to_stop"
    """As STOP, but goes on if that fails: a run must not stay `running` because something here broke."""
    RECORD_END = "record_end"
    HAND_OVER = "hand_over"
    """Let go of a run that a person has taken, once its program has ended."""
    RELEASE = "release"
    """Free what the ended run used: worktree and files."""


@dataclass(frozen=True)
class Began:
    """The run's command or session may be followed now."""


@dataclass(frozen=True)
class Claimed:
    """The run's agent claims success, which is to be verified."""


@dataclass(frozen=True)
class TakenByPerson:
    """A person takes the run over: its program is to end, and the run goes on in their hands."""


@dataclass(frozen=True)
class NextRound:
    """The claim was not verified, and the program is to go on."""


@dataclass(frozen=True)
class Over:
    """The work ended here, and this process knows how: its command ended, its session was judged, or nothing began.

    `gone`: its processes have ended, too, so that there is nothing to stop.
    """

    gone: bool = False


@dataclass(frozen=True)
class RunEnded:
    """The run has ended otherwise: its agent completed it, a person canceled it, it was replaced or timed out."""

    completed: bool = False

    @staticmethod
    def of(row: Run | None) -> "RunEnded":
        """None is a run that is gone with its automation."""
        return RunEnded(completed=row is not None and row.completion_id is not None)


@dataclass(frozen=True)
class TakenOver:
    """The run goes on under another process's lease, with its processes."""


@dataclass(frozen=True)
class ToldToStop:
    """The process stops."""


@dataclass(frozen=True)
class TryAgain:
    """The step is to be tried again: something that it needs is away for now, such as the database or descriptors."""


@dataclass(frozen=True)
class Broke:
    """The step failed in a way that nobody foresaw."""


@dataclass(frozen=True)
class StepDone:
    """A step of the plan is carried out."""


@dataclass(frozen=True)
class StepFailed:
    """A step of the plan failed; what it left is cleaned up from the outbox, or when the next process starts."""


Message = (
    Began
    | Claimed
    | TakenByPerson
    | NextRound
    | Over
    | RunEnded
    | TakenOver
    | ToldToStop
    | TryAgain
    | Broke
    | StepDone
    | StepFailed
)


@record
class Job:
    """`plan` is what is left to do while finishing; its first step is being carried out."""

    phase: Phase = Phase.STARTING
    plan: tuple[Step, ...] = ()

    @property
    def step(self) -> Step | None:
        """The step to carry out now; None when the job is done."""
        match self.phase:
            case Phase.STARTING:
                return Step.START
            case Phase.FOLLOWING:
                return Step.FOLLOW
            case Phase.VERIFYING:
                return Step.VERIFY
            case _:
                return self.plan[0] if self.plan else None


DONE = Job(Phase.DONE)
_FOLLOWING = Job(Phase.FOLLOWING)
_VERIFYING = Job(Phase.VERIFYING)
_ENDED_HERE = (Step.RECORD_END, Step.STOP, Step.RELEASE)
_ENDED_AND_GONE = (Step.RECORD_END, Step.RELEASE)
_ENDED_ELSEWHERE = (Step.STOP, Step.RELEASE)
_STOPPED = (Step.STOP, Step.RECORD_END, Step.RELEASE)  # a run's processes end before the run
_HANDED_OVER = (Step.STOP, Step.HAND_OVER)
_BROKEN = (Step.TRY_TO_STOP, Step.RECORD_END, Step.RELEASE)


def decide(job: Job, message: Message) -> Job:
    """The job after a message. A job that comes back unchanged carries out its step again, after a pause."""
    if isinstance(message, TryAgain):
        return job
    return _finishing(job, message) if job.phase is Phase.FINISHING else _at_work(job, message)


def listens(job: Job) -> bool:
    """Whether a message ends the step that the job carries out; of the last steps, only the wait for last words."""
    return job.phase in AT_WORK or job.step is Step.LAST_WORDS


def _at_work(job: Job, message: Message) -> Job:  # noqa: PLR0911  a table of cases
    match message:
        case _ if job.phase is Phase.DONE:
            return job
        case Began():
            return _FOLLOWING
        case Claimed():
            return job if job.phase is Phase.VERIFYING else _VERIFYING
        case TakenByPerson():
            return _plan(_HANDED_OVER)
        case NextRound():
            return Job()
        case Over(gone):
            return _plan(_ENDED_AND_GONE if gone else _ENDED_HERE)
        case RunEnded(completed):
            return _plan(_after_completion(_ENDED_ELSEWHERE) if completed else _ENDED_ELSEWHERE)
        case TakenOver():
            return DONE
        case ToldToStop():
            return _plan(_STOPPED)
        case _:  # a step of a plan cannot be reported before there is a plan: treated as the error it is
            return _plan(_BROKEN)


def _finishing(job: Job, message: Message) -> Job:  # noqa: PLR0911  a table of cases
    plan = job.plan
    match message:
        case StepDone():
            return _plan(plan[1:])
        case RunEnded(completed) if Step.RECORD_END in plan:  # found when the end was to be recorded
            left = tuple(step for step in plan if step is not Step.RECORD_END)
            return _plan(_after_completion(left) if completed else left)
        case RunEnded() if Step.HAND_OVER in plan:  # it ended before it was let go of
            return _plan((*(step for step in plan if step is not Step.HAND_OVER), Step.RELEASE))
        case ToldToStop() if plan[0] is Step.RECORD_END:
            return DONE  # the database is away: the next process adopts the run and finds how its work ended
        case ToldToStop() if plan[0] is Step.LAST_WORDS:
            return _plan(plan[1:])
        case TakenOver() | StepFailed():
            return DONE
        case _:
            return job


def _after_completion(plan: tuple[Step, ...]) -> tuple[Step, ...]:
    """The program of a completed run may write its last output and its usage before it is stopped."""
    return (Step.LAST_WORDS, *plan) if Step.STOP in plan else plan


def _plan(steps: tuple[Step, ...]) -> Job:
    return Job(Phase.FINISHING, steps) if steps else DONE
