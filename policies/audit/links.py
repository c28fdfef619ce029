"""How Google's APIs name a resource: a full URL, a partial path or a bare name, brought to one form."""

from __future__ import annotations

from typing import Final

GLOBAL: Final = "global"
_PLACES: Final = ("zones", "regions", "locations")


def relative(link: str, project: str = "") -> str:
    """`link` without host and version: `projects/p/zones/us-central1-b/disks/llama`.

    Takes full URLs of any host and version, partial paths (`zones/z/disks/d`, to which `project` is added where it is
    given) and paths that are relative already. A bare name has no place and comes back as it is.
    """
    parts = _parts(link)
    if "projects" in parts:
        return "/".join(parts[parts.index("projects") :])
    if "b" in parts[:-1] and _hosted(link):
        return "/".join(parts[parts.index("b") :])
    if project and len(parts) > 1 and (parts[0] in _PLACES or parts[0] == GLOBAL):
        return "/".join(("projects", project, *parts))
    return "/".join(parts)


def project_of(link: str) -> str:
    """The project that a link names; empty where it names none."""
    return _after(_parts(link), "projects")


def location_of(link: str) -> str:
    """The zone or region that a link names, `global`, or empty where it names none."""
    parts = _parts(link)
    found = next((place for key in _PLACES if (place := _after(parts, key))), "")
    return found or (GLOBAL if GLOBAL in parts else "")


def last(link: str) -> str:
    """The last part of a link: the name of a resource, of a type, of a zone."""
    return link.rstrip("/").rpartition("/")[2]


def _parts(link: str) -> list[str]:
    # No parser of URLs: it refuses some texts, and a name that makes no sense must find nothing rather than stop.
    path = link.partition("//")[2].partition("/")[2] if _hosted(link) else link
    return [part for part in path.partition("?")[0].split("/") if part]


def _hosted(link: str) -> bool:
    return link.startswith(("http://", "https://", "//"))


def _after(parts: list[str], key: str) -> str:
    at = parts.index(key) + 1 if key in parts else len(parts)
    return parts[at] if at < len(parts) else ""
