"""Where a city's mail is kept, by `[mail] provider`."""

from lamplighter.app.config_peek import text_setting
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.on_demand import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.mail import Mail

_SCRIPT = "exec:"
_DRILLS = ("fake", "fail")
_MAIL = {
    _SCRIPT: "lamplighter.adapters.mail.exec:mail_of_script",
    "fake": "lamplighter.adapters.mail.drills:FakeMail",
    "fail": "lamplighter.adapters.mail.drills:FailMail",
}


def outside_mail(city: OpenCity) -> "Mail | None":
    """The program that keeps the city's mail; None if it is kept in the city's own store."""
    provider = text_setting(city, "mail", "provider", default="", names=("LAMP_MAIL_PROVIDER", "GC_MAIL"))
    if provider is None or provider not in {"", *_DRILLS}:
        provider = city.config.city.mail.provider
    if not provider:
        return None
    kind = provider if provider in _DRILLS else _SCRIPT
    adapter = load(_MAIL[kind])
    mail: Mail
    match kind:
        case "fail":
            mail = adapter()
        case "fake":
            mail = adapter(city.clock, city.ids)
        case _:
            mail = adapter(provider.removeprefix(_SCRIPT), city.paths.root, city.settings.env)
    return mail
