"""Built-in templates: each pre-fills a new automation but never enables it; a person must do that."""

from lamplighter.domain.automations.model import AgentAction, Automation, Gate, Manual, Mode, Schedule, Trigger
from lamplighter.domain.automations.words import gate_badge
from lamplighter.kit.errors import NotFound
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record
from lamplighter.kit.schedule import Daily, Weekly

_SUN, _MON, _WED, _FRI = 0, 1, 3, 5


@record
class Template:
    """`needs` describes what the project must provide for the prompt to make sense."""

    id: str
    name: str
    description: str
    gate: Gate
    prompt: str
    mode: Mode = Mode.FULL_ACCESS
    needs: str = ""

    @property
    def badge(self) -> str:
        return gate_badge(self.gate)


def from_template(
    template_id: str, *, name: str | None = None, path: str | None = None, rig: str | None = None
) -> Automation:
    """A disabled automation with everything filled in. Raises NotFound with the nearest known id."""
    template = template_named(template_id)
    return Automation(
        name=name or template.id,
        action=AgentAction(template.prompt, path=path, mode=template.mode),
        triggers=(Trigger(template.gate.kind.value, template.gate),),
        rig=rig,
        description=template.description,
        enabled=False,
        source=f"template:{template.id}",
    )


def template_named(template_id: str) -> Template:
    for template in TEMPLATES:
        if template.id == template_id:
            return template
    near = full_stop(template_id, (one.id for one in TEMPLATES))
    raise NotFound(f"There is no template `{template_id}`{near}", hint="`lamp automation templates` lists them.")


_REPORT = """
Finish by completing the run with a summary of at most ten lines. If there was nothing to report, say so in one line and
complete as succeeded. If you could not do the work, complete as failed and name what was missing. If a decision is
needed that is not yours to make, complete as needs_human and put the question first.
"""

_READ_ONLY = """
Change nothing: no commits, no pushes, no comments, no labels, no edits to files in the working tree.
"""

TEMPLATES: tuple[Template, ...] = (
    Template(
        "issue-triage",
        "Morning issue triage",
        "Reads the issues opened since yesterday and proposes priority, owner and next step for each.",
        Schedule(Daily(9, 0)),
        f"""Triage the issues of this repository that were opened or reopened in the last 24 hours.

For each one: read it whole with its comments, look for the code it talks about, and check whether an open or recently
closed issue already covers it. Then propose
- a priority: urgent (people lose data, money or access), soon, or later, with the reason in half a sentence;
- an owner, judged by who last worked on the code concerned, not by who is loudest;
- the next step: reproduce, ask the reporter for a named detail, fix, close as duplicate of which, or close and why.

Put urgent ones first. List those that you could not understand under their own heading rather than guessing.
{_READ_ONLY}{_REPORT}""",
        Mode.PLAN,
        "an issue tracker the agent can read, for example through its command-line client",
    ),
    Template(
        "changelog-draft",
        "Changelog draft",
        "Turns the changes merged this week into release notes written for users.",
        Schedule(Weekly(_FRI, 17, 0)),
        f"""Draft release notes for what was merged into the main branch in the last seven days.

Read the commits and the diffs behind them; a title alone is not enough to know what changed for a user. Group the notes
as Added, Changed, Fixed and Removed. One line each, in the user's words: what they can do now, what behaves
differently, what no longer breaks. Mark whatever needs action on upgrade and say which action. Leave out refactoring,
tests and tooling unless users notice them.

Write the draft under the heading for unreleased changes in the changelog, keeping what stands there, on a branch of its
own named `changelog-draft` with today's date, and commit it. Do not merge it and do not touch any other file.
{_REPORT}""",
    ),
    Template(
        "repository-audit",
        "Repository audit",
        "Looks over open pull requests and the state of the main branch and lists what needs a hand.",
        Manual(),
        f"""Audit the state of this repository and give one list of actions, the most valuable first.

Look at: open pull requests (waiting for review, waiting for their author, in conflict, failing checks, larger than a
person can review); the main branch (are its checks green, since when not); branches that hold work nobody proposed;
secrets or large binaries that were committed; instructions in the README that no longer work when followed.

For every action name the place, the reason in one sentence, the effort (minutes, hours, days) and who is best placed to
do it. Stop at twenty; say how many you left out.
{_READ_ONLY}{_REPORT}""",
        Mode.PLAN,
    ),
    Template(
        "flaky-test-hunt",
        "Flaky-test hunt",
        "Finds tests that pass and fail on the same code, and mends the worst one.",
        Schedule(Daily(2, 30)),
        f"""Find tests in this repository whose result does not depend on the code alone, and mend one of them.

First collect suspects: from the history of the checks where you can read it (failures that went away on a rerun), and
by running the test suite three times with the order of tests shuffled where the runner can do that. Keep the whole hunt
within thirty minutes; a slow suite is run in part, beginning with tests that wait, use the network, time or randomness.

For the worst suspect find the cause: shared state, order, real time, an unawaited result, a port or file that two tests
use, an assertion on something unordered. Mend the cause. Do not add sleeps, retries or longer limits, and do not
skip or weaken the test. Run the mended test fifty times; then commit on a branch of its own that names the test.

Report every suspect with the evidence, whether mended or not.
{_REPORT}""",
    ),
    Template(
        "dependency-check",
        "Dependency check",
        "Looks for outdated and vulnerable dependencies and prepares the upgrades that are safe.",
        Schedule(Weekly(_MON, 6, 0)),
        f"""Check the dependencies of this project.

Use the project's own tools to list what is outdated and what has published security advisories. For each advisory say
whether the affected code is reachable from this project, with the path that leads to it or the reason it is not.

Then upgrade what is safe: patch and minor releases whose change notes promise compatibility, together with the lock
file, on one branch. Run the full checks; take back each upgrade that breaks them. Leave major releases alone, but list
them with what would have to change here. Never loosen a pin to make a resolver happy.
{_REPORT}""",
    ),
    Template(
        "stale-branches",
        "Stale branches",
        "Lists branches that were merged or forgotten and says what is still worth keeping.",
        Schedule(Weekly(_WED, 8, 0)),
        f"""List the remote branches of this repository that nobody needs any more, and those that look so but are not.

A branch is done when all of its changes are in the main branch, also when they came in squashed: compare content, not
only ancestry. It is forgotten when its last commit is older than 30 days, it is not done and no open pull request uses
it. For each forgotten one say in one sentence what it holds and whether that is still missing from the main branch.

Give three lists: safe to delete, worth a look, keep. End with the one command that would delete the first list.
{_READ_ONLY}{_REPORT}""",
        Mode.PLAN,
    ),
    Template(
        "docs-drift",
        "Docs drift",
        "Compares the documentation with the code and mends what is no longer true.",
        Schedule(Weekly(_MON, 9, 30)),
        f"""Find places where the documentation of this repository says something that is no longer true.

Start from what changed in the last 14 days: for every changed command, option, setting, route, environment variable,
default and file layout, search the documentation, the README, examples and help texts. Then follow the getting-started
page step by step as a newcomer would, in a scratch directory.

Mend what is plainly wrong, in the words and style of the page it stands on, on one branch. Where it is unclear whether
the page or the code is wrong, change neither and list both with their places.
{_REPORT}""",
    ),
    Template(
        "weekly-digest",
        "Weekly digest",
        "Tells in one page what happened in the project this week and what waits.",
        Schedule(Weekly(_FRI, 15, 0)),
        f"""Write a digest of the last seven days in this repository for someone who was away.

Sections, each left out when empty: what was finished and what it means for users; what is under way and by whom; what
broke and whether it is mended; decisions that were taken and where they are written down; what waits for an answer, and
for whose. Give links or commit ids for everything you claim. At most one page. No praise, no adjectives about effort,
and no numbers of commits or lines.
{_READ_ONLY}{_REPORT}""",
        Mode.PLAN,
    ),
    Template(
        "test-gaps",
        "Test gaps",
        "Finds recently changed code that no test would notice breaking, and writes the missing tests.",
        Schedule(Weekly(_WED, 3, 0)),
        f"""Find code changed in the last seven days that could break without any test failing. Close the worst gaps.

For each changed function ask which test fails if you negate a condition, drop a line or return early; try it where you
are not sure, and put the code back. Rank the gaps by what a user would lose. For the three worst write tests that state
the behaviour in their name, use the project's own fixtures and style, and fail for the right reason when the code is
broken on purpose. Do not change the code itself. If you find a defect while doing so, write the failing test, mark
nothing as expected, and report it instead of mending it.

Commit the passing tests on a branch of their own.
{_REPORT}""",
    ),
    Template(
        "performance-ideas",
        "Performance ideas",
        "Measures the slowest paths and ranks up to ten improvements with evidence.",
        Schedule(Weekly(_SUN, 4, 0)),
        f"""Look for places where this project wastes time or memory, and rank up to ten improvements.

Measure before you judge: run the project's benchmarks if it has any, else time its main commands or its slowest tests
and profile the top three. For each idea give the file and function, the measurement that points to it, the change in
one or two sentences, what you expect to gain and what it would cost in clarity. Leave out ideas without a measurement.
{_READ_ONLY}{_REPORT}""",
        Mode.PLAN,
    ),
)
