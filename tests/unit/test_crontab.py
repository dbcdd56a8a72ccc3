"""What a line of a crontab becomes: as cron would have run it, or told with its reason."""

import subprocess
from pathlib import Path

import pytest

from lamplighter.domain.automations.crontab import CronJob, read_crontab


def one(text: str, *, system: bool = False) -> CronJob:
    jobs, left = read_crontab(text, system=system)
    assert left == []
    assert len(jobs) == 1
    return jobs[0]


@pytest.mark.parametrize(
    ("line", "name", "schedule"),
    [
        ("30 8 * * 1-5 /opt/bin/triage.sh --all", "triage", "30 8 * * 1-5"),
        ("  @daily\tcd /srv && ./backup.sh > /tmp/log 2>&1", "backup", "@daily"),
        ("0 0 1 jan * FOO=1 nice python3 -u report.py", "report", "0 0 1 jan *"),
        ("*/10 *  * * * bash -c 'echo hi'", "echo", "*/10 * * * *"),
        ("* * * * * ///", "job", "* * * * *"),
    ],
)
def test_a_line_has_a_name_and_a_schedule(line: str, name: str, schedule: str) -> None:
    job = one(line)
    assert (job.schedule, job.timezone) == (schedule, None)
    assert job.name == name


@pytest.mark.parametrize(
    "command",
    [
        "flock -n /tmp/two.lock /opt/agent2.sh", "/usr/bin/flock -w 10 /tmp/x /opt/agent2.sh --all",
        "flock -n /tmp/x -c '/opt/agent2.sh now'", "timeout -k 5 10m flock /tmp/x sh /opt/agent2.sh",
    ],
)  # fmt: skip
def test_the_name_is_the_scripts_and_not_that_of_the_program_which_starts_it(command: str) -> None:
    assert one(f"1 * * * * {command}").name == "agent2"


def test_names_are_told_apart() -> None:
    jobs, _ = read_crontab("1 * * * * ping\n2 * * * * ping\n3 * * * * /bin/ping\n")
    assert [job.name for job in jobs] == ["ping", "ping-2", "ping-3"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot start-it", "machine starts"),
        ("61 * * * * x", "minutes go from 0 to 59"),
        ("5 4 * * *", "neither a setting"),
        ("rubbish", "neither a setting"),
        ("@fortnightly x", "@fortnightly"),
        ("MAILTO=me@example.com", "mailed to nobody"),
        ("CRON_TZ=Mars/Olympus", "Mars/Olympus"),
        ('"a b"=c', "no name that a shell can export"),
    ],
)
def test_what_cannot_be_carried_is_told_with_its_line(line: str, why: str) -> None:
    jobs, left = read_crontab(f"# first\n\n{line}\n")
    assert jobs == []
    assert [(one.number, one.line) for one in left] == [(3, line)]
    assert why in left[0].why


def ran(text: str, home: Path) -> str:
    job = one(text)
    done = subprocess.run(
        ["sh", "-c", job.exec], cwd="/", env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True, text=True,
        capture_output=True, timeout=180,
    )  # fmt: skip
    return done.stdout


def test_it_runs_in_the_home_directory_with_the_settings_above_it_and_by_their_shell(tmp_path: Path) -> None:
    text = 'SHELL=/bin/bash\nGREETING = "it\'s $HOME"\n* * * * * [[ a == a ]] && pwd && echo $GREETING'
    assert ran(text, tmp_path) == f"{tmp_path}\nit's $HOME\n"


@pytest.mark.parametrize(
    ("setting", "value"),
    [('"two words"', "two words"), ("'a'", "a"), ('"', '"'), ("'a\"", "'a\""), ('""', ""), ("a'", "a'")],
)
def test_a_setting_loses_its_quotes_if_it_stands_between_two(tmp_path: Path, setting: str, value: str) -> None:
    assert ran(f'A={setting}\n* * * * * echo "$A"', tmp_path) == f"{value}\n"


def test_settings_below_a_line_are_not_for_it(tmp_path: Path) -> None:
    assert ran("* * * * * echo ${LATE-none}\nLATE=1", tmp_path) == "none\n"


def test_percent_signs_mean_what_they_mean_in_cron(tmp_path: Path) -> None:
    assert ran("* * * * * echo 50\\%; cat %first%second", tmp_path) == "50%\nfirst\nsecond\n"


def test_a_zone_goes_with_the_lines_below_it() -> None:
    jobs, left = read_crontab('1 * * * * a\nCRON_TZ=Europe/Berlin\n2 * * * * b\nMAILTO=""\n')
    assert [(job.name, job.timezone) for job in jobs] == [("a", None), ("b", "Europe/Berlin")]
    assert left == []


def test_the_user_of_a_system_crontab_is_told_and_not_run() -> None:
    job = one("17 * * * * root run-parts /etc/cron.hourly", system=True)
    assert job.name == "run-parts"
    assert job.exec == "cd\nrun-parts /etc/cron.hourly"
    assert job.notes == ("it runs as the user of the city, not as `root`",)
    assert "no command" in read_crontab("17 * * * * root", system=True)[1][0].why
