"""`lamp completion` and `lamp version`."""

import click
from click.shell_completion import BashComplete, ShellComplete, get_completion_class

from lamplighter import __version__
from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand


class _Bash(BashComplete):
    """Bash breaks a word at `:` and `=`; names such as `triage:rig:shop` are put together again and completed whole."""

    source_template = r"""%(complete_func)s() {
    local IFS=$'\n' response completion type value word glued=
    local -a words=()

    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        [[ -z $word && ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && glued=
        if [[ ${#words[@]} -gt 0 && ( -n $glued || ( -n $word && $word != *[!:=]* ) ) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        [[ -n $word && $word != *[!:=]* ]] && glued=yes || glued=
    done
    local current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == *[!:=]* ]] || current=
    local before=${words[-1]%%"$current"}
    [[ $before == --*=* ]] && before=${before#*=}

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$before"}")
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@click.command("completion", cls=LampCommand, context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL; put `eval "$(lamp completion bash)"` into your shell's start-up file."""
    from lamplighter.cli.main import root

    completer: type[ShellComplete] | None = _Bash if shell == "bash" else get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(completer(root, {}, "lamp", "_LAMP_COMPLETE").source())


@click.command("version", cls=LampCommand, context_settings=CONTEXT)
def version() -> None:
    """The version of this program."""
    output.record({"version": __version__}, f"lamp {__version__}")


def command_for(name: str) -> click.Command:
    return completion if name == "completion" else version
