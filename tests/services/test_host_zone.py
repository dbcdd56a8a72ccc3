"""The machine's zone by name, from wherever it says so."""

from pathlib import Path

from lamplighter.app.host_zone import host_zone


def test_the_environment_comes_first_then_the_link_then_the_file_then_utc(tmp_path: Path) -> None:
    zoneinfo = tmp_path / "share" / "zoneinfo" / "Europe"
    zoneinfo.mkdir(parents=True)
    (zoneinfo / "Berlin").write_text("")
    link = tmp_path / "localtime"
    link.symlink_to(zoneinfo / "Berlin")
    written = tmp_path / "timezone"
    written.write_text("Asia/Kolkata\n")
    nowhere = tmp_path / "nowhere"
    assert host_zone({"TZ": ":America/New_York"}, localtime=link, timezone=written).key == "America/New_York"
    assert host_zone({"TZ": "rubbish"}, localtime=link, timezone=written).key == "Europe/Berlin"
    assert host_zone({}, localtime=nowhere, timezone=written).key == "Asia/Kolkata"
    assert host_zone({}, localtime=nowhere, timezone=nowhere).key == "UTC"
