"""Functions of the Google provider that an offline preview can answer, and how.

What only Google could tell is a text that makes everything built with it unknown; a function whose answer would be
nothing but that is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER
from infra.engine.errors import EngineRefusal
from infra.engine.wire import UNFORESEEN_TEXT, Wire
from policies.hardware.errors import HardwareError
from policies.hardware.slices import shapes
from policies.hardware.tables import rows
from policies.hardware.zones import check_zone, is_zone, region_of

Arguments: TypeAlias = Mapping[str, Wire]
_COMPUTE: Final = "https://www.googleapis.com/compute/v1"


def answer_invoke(token: str, arguments: Arguments, config: Arguments) -> dict[str, Wire]:
    """The answer of the function `token`; `config` is the configuration of its provider. Raises EngineRefusal."""
    function = _FUNCTIONS.get(token)
    if function is None:
        known = sorted(_FUNCTIONS)
        close = difflib.get_close_matches(token, known, n=1, cutoff=0.8)
        raise EngineRefusal(
            f"{token}: a function that only Google can answer; an offline preview answers {', '.join(known)}."
            + (f" Did you mean {close[0]}?" if close else " Take the value from the stack's configuration instead.")
        )
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        return function({**{key: config[key] for key in ("project", "zone", "region") if key in config}, **given})
    except HardwareError as error:
        raise EngineRefusal(f"{token}: {error}") from None


def _runtimes(arguments: Arguments) -> dict[str, Wire]:
    versions: list[Wire] = [row["pattern"] for row in rows("runtimes") if "*" not in row["pattern"]]
    return {**_in_zone(arguments), "versions": versions}


def _accelerators(arguments: Arguments) -> dict[str, Wire]:
    return {**_in_zone(arguments), "types": list[Wire](shapes())}


def _in_zone(arguments: Arguments) -> dict[str, Wire]:
    zone = arguments.get("zone")
    if not isinstance(zone, str):
        raise HardwareError("zone is not set; set it, or gcp:zone in the stack's configuration")
    check_zone(zone)
    return {"id": f"{arguments.get('project')}/{zone}", "project": arguments.get("project"), "zone": zone}


def _project(arguments: Arguments) -> dict[str, Wire]:
    project = arguments.get("projectId", arguments.get("project"))
    if not isinstance(project, str):
        raise HardwareError("projectId is not set; set it, or gcp:project in the stack's configuration")
    unforeseen = dict.fromkeys(("number", "name", "billingAccount", "orgId", "folderId"), UNFORESEEN_TEXT)
    return {**unforeseen, "id": f"projects/{project}", "projectId": project}


def _client(arguments: Arguments) -> dict[str, Wire]:
    zone, region = arguments.get("zone"), arguments.get("region")
    if region is None and isinstance(zone, str) and is_zone(zone):
        region = region_of(zone)
    project = arguments.get("project")
    place = f"projects/{project}/regions/{region}/zones/{zone}"
    return {"id": place, "project": project, "region": region, "zone": zone, "accessToken": ENCRYPTED_PLACEHOLDER}


def _image(arguments: Arguments) -> dict[str, Wire]:
    name, family = arguments.get("name"), arguments.get("family")
    if not isinstance(name, str) and not isinstance(family, str):
        raise HardwareError("neither name nor family of the image is set")
    path = f"projects/{arguments.get('project')}/global/images/{name or f'family/{family}'}"
    # Sizes are numbers, in whose place the SDK takes no text: they stay out.
    return {
        "id": path,
        "imageId": UNFORESEEN_TEXT,
        "selfLink": f"{_COMPUTE}/{path}",
        "name": name or UNFORESEEN_TEXT,
        "family": family or UNFORESEEN_TEXT,
        "project": arguments.get("project"),
    }


_FUNCTIONS: Final[Mapping[str, Callable[[Arguments], dict[str, Wire]]]] = {
    "gcp:compute/getImage:getImage": _image,
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:organizations/getProject:getProject": _project,
    "gcp:tpu/getV2AcceleratorTypes:getV2AcceleratorTypes": _accelerators,
    "gcp:tpu/getV2RuntimeVersions:getV2RuntimeVersions": _runtimes,
}
