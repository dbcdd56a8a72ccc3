import pytest

from lamplighter.domain.automations.decode import Origin, decode_file, decode_json
from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.automations.shape import to_file, to_shape
from lamplighter.domain.automations.templates import TEMPLATES, Template, from_template, template_named
from lamplighter.kit.errors import NotFound

ASKED_FOR = {
    "issue-triage", "changelog-draft", "repository-audit", "flaky-test-hunt", "dependency-check", "stale-branches",
    "docs-drift", "weekly-digest",
}  # fmt: skip


def test_the_promised_templates_are_there_once_each() -> None:
    ids = [one.id for one in TEMPLATES]
    assert set(ids) >= ASKED_FOR
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda one: one.id)
def test_a_template_pre_fills_a_valid_automation_and_never_enables_it(template: Template) -> None:
    automation = from_template(template.id, path="/srv/app")
    assert not automation.enabled
    assert automation.source == f"template:{template.id}"
    assert isinstance(automation.action, AgentAction)
    assert automation.action.prompt.strip()
    decoded = decode_json(to_shape(automation), Origin(automation.source))
    assert decoded == automation
    assert isinstance(decode_file(to_file(automation), Origin("file", automation.name)), Automation)
    assert template.badge in {"Daily", "Weekly", "Manual"}


def test_a_template_takes_a_name_and_a_rig() -> None:
    assert from_template("docs-drift", name="drift", rig="demo").scoped_name == "drift:rig:demo"


def test_an_unknown_template_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="did you mean `docs-drift`"):
        template_named("doc-drift")
