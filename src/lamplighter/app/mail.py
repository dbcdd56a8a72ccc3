"""Where a city's mail is kept, by `[mail] provider`."""

from lamplighter.app.config_peek import text_setting
from lamplighter.app.wiring import OpenCity
from lamplighter.ports.mail import Mail
from lamplighter.services.mail import OwnMail, ToldMail

_SCRIPT = "exec:"


def mail_of(city: OpenCity) -> Mail:
    """Adapters of outside mail are imported only if the city uses one."""
    provider = text_setting(city, "mail", "provider", default="", names=("LAMP_MAIL_PROVIDER", "GC_MAIL"))
    if provider is None or provider not in {"", "fake", "fail"}:
        provider = city.config.city.mail.provider
    match provider:
        case "":
            return OwnMail(city.store, city.ids, city.prefix, city.act)
        case "fake" | "fail":
            from lamplighter.adapters.mail.drills import FailMail, FakeMail

            return FailMail() if provider == "fail" else FakeMail(city.clock, city.ids)
        case _:
            return ToldMail(_script(city, provider.removeprefix(_SCRIPT)), city.store, city.act)


def _script(city: OpenCity, script: str) -> Mail:
    from lamplighter.adapters.mail.exec import ExecMail
    from lamplighter.adapters.processes.program import Program, script_path

    path = script_path(script, city.paths.root, city.settings.env.get("PATH"))
    return ExecMail(Program(path, city.paths.root, city.settings.env, setting="[mail] provider"))
