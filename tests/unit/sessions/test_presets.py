"""Command lines of the presets: where the prompt, the mode, the model, the tools and the session id go."""

import json

import pytest

from lamplighter.domain.sessions.presets.catalogue import DETECTED, PRESETS, Declared, PromptMode, declared, detect
from lamplighter.domain.sessions.presets.merging import NotSettings
from lamplighter.domain.sessions.presets.model import Invocation, McpServer, Mode, Place, Request, Writing

MCP = McpServer("http://127.0.0.1:5267/mcp", "secret-token")
NAMES = sorted(set(PRESETS) - {"cursor"})
WITH_MCP = [name for name in NAMES if PRESETS[name].has_mcp]


def asked(**fields: object) -> Request:
    settings: dict[str, object] = {"work_dir": "/home/me/project", "files_dir": "/city/s/files"} | fields
    return Request(**settings)  # type: ignore[arg-type]


def headless(name: str, **fields: object) -> Invocation:
    build = PRESETS[name].headless
    assert build is not None
    return build(asked(**fields))


def everything(invocation: Invocation) -> str:
    variables = {**invocation.env, **invocation.fixed}
    return json.dumps([invocation.argv, variables, [file.content for file in invocation.files]])


@pytest.mark.parametrize("name", NAMES)
def test_a_headless_run_carries_its_prompt_and_reads_nothing(name: str) -> None:
    invocation = headless(name, prompt="--do it; `rm`")
    assert "--do it; `rm`" in everything(invocation)
    assert not invocation.takes_input


@pytest.mark.parametrize("name", NAMES)
def test_an_interactive_session_takes_input_and_gets_its_prompt_by_argument_or_by_hand(name: str) -> None:
    invocation = PRESETS[name].interactive(asked(prompt="look around"))
    assert invocation.takes_input
    assert "look around" in everything(invocation) or invocation.nudge == "look around"
    assert "look around" not in everything(PRESETS[name].interactive(asked()))


@pytest.mark.parametrize("name", WITH_MCP)
def test_the_tools_of_a_run_come_with_their_address_and_token(name: str) -> None:
    told = everything(headless(name, prompt="go", mcp=MCP))
    assert MCP.url in told
    assert MCP.token in told
    assert MCP.token not in everything(headless(name, prompt="go"))


@pytest.mark.parametrize("name", WITH_MCP)
def test_a_token_is_never_on_a_command_line(name: str) -> None:
    assert not [word for word in headless(name, prompt="go", mcp=MCP).argv if MCP.token in word]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"shell", "openhands"}])
def test_each_mode_is_told_to_the_program(name: str) -> None:
    told = {everything(headless(name, prompt="go", mode=mode)) for mode in Mode}
    assert len(told) == len(Mode) - (name == "amp")  # Amp knows no planning


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"shell", "amp"}])
def test_the_model_is_told_to_the_program(name: str) -> None:
    assert "big-model" in everything(headless(name, prompt="go", model="big-model"))


@pytest.mark.parametrize("name", [name for name in NAMES if PRESETS[name].can_resume])
def test_a_session_goes_on_by_its_id(name: str) -> None:
    assert any("ses-42" in word for word in headless(name, prompt="go", resume="ses-42").argv)
    assert any("ses-42" in word for word in PRESETS[name].interactive(asked(resume="ses-42")).argv)


@pytest.mark.parametrize("name", NAMES)
def test_further_arguments_of_the_configuration_are_passed_on(name: str) -> None:
    assert "--extra" in headless(name, prompt="go", args=("--extra",)).argv


def test_claude_is_told_that_it_is_in_a_sandbox_only_as_root_with_full_access() -> None:
    assert headless("claude", as_root=True).env["IS_SANDBOX"] == "1"
    assert "IS_SANDBOX" not in headless("claude").env
    assert "IS_SANDBOX" not in headless("claude", as_root=True, mode=Mode.PLAN).env


def test_the_first_questions_of_claude_are_answered_in_its_own_file_without_losing_what_it_says() -> None:
    invocation = PRESETS["claude"].interactive(asked(env={"ANTHROPIC_API_KEY": "k" * 30}))
    (home,) = [file for file in invocation.files if file.place is Place.HOME]
    said = json.loads(home.content)
    assert home.writing is Writing.MERGE_JSON
    assert said["projects"]["/home/me/project"]["hasTrustDialogAccepted"]
    assert said["customApiKeyResponses"]["approved"] == ["k" * 20]


def test_codex_waits_for_its_tools() -> None:
    assert "mcp_servers.automation.required=true" in headless("codex", mcp=MCP).argv


def test_goose_does_not_take_braces_in_a_prompt_for_its_own() -> None:
    assert "{{" not in headless("goose", prompt="{{ x }} {% y %}").files[0].content


def test_the_first_program_found_is_the_one_detected() -> None:
    assert detect(lambda program: program in {"gemini", "codex"}) is PRESETS["codex"]
    assert detect(lambda _: False) is None
    assert PRESETS["shell"] not in DETECTED


@pytest.mark.parametrize(
    ("mode", "argv"),
    [
        (PromptMode.ARG, ("bot", "--auto", "hello")),
        (PromptMode.FLAG, ("bot", "--auto", "--say", "hello")),
        (PromptMode.NONE, ("bot", "--auto")),
    ],
)
def test_a_program_of_the_citys_own_takes_its_prompt_as_declared(mode: PromptMode, argv: tuple[str, ...]) -> None:
    preset = declared(Declared("bot", "bot", args=("--auto",), prompt_mode=mode, prompt_flag="--say", env={"A": "b"}))
    invocation = preset.interactive(asked(prompt="hello"))
    assert invocation.argv == argv
    assert invocation.env == {"A": "b"}


@pytest.mark.parametrize("name", WITH_MCP)
def test_a_token_is_in_no_file_that_outlives_the_run(name: str) -> None:
    holding = [file for file in headless(name, prompt="go", mcp=MCP).files if MCP.token in file.content]
    assert all(file.place is Place.FILES or file.writing is Writing.ENTRY for file in holding)


def test_settings_that_a_person_keeps_in_the_variable_of_opencode_stay() -> None:
    theirs = {"provider": {"mine": {}}, "mcp": {"docs": {"type": "local"}}, "autoupdate": True}
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps(theirs)}
    settings = json.loads(headless("opencode", mcp=MCP, env=env).fixed["OPENCODE_CONFIG_CONTENT"])
    assert set(settings["mcp"]) == {"docs", "automation"}
    assert settings["provider"] == {"mine": {}}
    assert settings["autoupdate"] is False
    with pytest.raises(NotSettings, match="OPENCODE_CONFIG_CONTENT is not JSON"):
        headless("opencode", mcp=MCP, env={"OPENCODE_CONFIG_CONTENT": "{"})


def test_a_home_that_a_person_gives_gemini_is_the_one_that_is_mirrored() -> None:
    invocation = headless("gemini", mcp=MCP, env={"GEMINI_CLI_HOME": "/srv/gem"})
    assert [mirror.home for mirror in invocation.mirrors] == ["/srv/gem/.gemini"]
    assert invocation.files[0].base == "/srv/gem/.gemini/settings.json"
    assert [mirror.home for mirror in headless("gemini", mcp=MCP).mirrors] == [".gemini"]


def test_aider_makes_no_repository_of_a_directory_that_is_none() -> None:
    assert "--no-git" in PRESETS["aider"].interactive(asked(in_repository=False)).argv
    assert "--no-git" not in PRESETS["aider"].interactive(asked()).argv


def test_a_program_that_can_do_no_run_is_not_detected_for_one() -> None:
    assert detect(lambda program: program == "aider") is None


def test_opencode_that_goes_on_with_a_conversation_has_its_prompt_typed() -> None:
    invocation = PRESETS["opencode"].interactive(asked(prompt="Go on.", resume="ses_1"))
    assert invocation.nudge == "Go on."
    assert "Go on." not in invocation.argv
