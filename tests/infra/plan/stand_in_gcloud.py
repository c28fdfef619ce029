#!/usr/bin/env python3
"""A gcloud for tests: disks, instances, guest attributes and snapshots of one project, kept in a JSON file.

The file named by CLOUD holds them with the faults to inject; every call is noted in it. Messages are those of the
real gcloud, since the scripts under test read them.
"""

import fcntl
import json
import os
import sys
from pathlib import Path

MISSING = "ERROR: (gcloud) Could not fetch resource:\n - The resource 'projects/p1/{kind}/{name}' was not found"
GUEST = "ERROR: (gcloud) The resource 'spotrail/verdict' of type 'Guest Attribute' was not found."


class FailedError(Exception):
    """What gcloud says on stderr before it exits with 1."""


def main(arguments):
    state = Path(os.environ["CLOUD"])
    # One call at a time; and a call that is killed leaves the state as it was.
    with state.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cloud = json.loads(state.read_text(encoding="utf-8"))
        words = [word for word in arguments if not word.startswith("--")]
        flags = dict(word[2:].split("=", 1) for word in arguments if word.startswith("--") and "=" in word)
        cloud["calls"].append(" ".join(words[1:3]))
        try:
            print(answer(cloud, words[1], words[2], words[3], flags))
            code = 0
        except FailedError as error:
            print(error, file=sys.stderr)
            code = 1
        draft = state.with_suffix(".draft")
        draft.write_text(json.dumps(cloud), encoding="utf-8")
        draft.replace(state)
    return code


def answer(cloud, kind, verb, name, flags):
    fault = cloud["faults"].get(f"{kind} {verb}")
    if fault:
        text = fault.pop(0)
        if text:
            raise FailedError(text)
    if verb == "create":
        return create(cloud, kind, name, flags)
    if name not in cloud[kind]:
        raise FailedError(MISSING.format(kind=kind, name=name))
    found = cloud[kind][name]
    if verb == "delete":
        del cloud[kind][name]
        return ""
    if verb == "describe":
        states = found["states"]
        return states.pop(0) if len(states) > 1 else states[0]
    if verb == "get-guest-attributes":
        verdicts = cloud["verdicts"]
        verdict = verdicts.pop(0) if len(verdicts) > 1 else verdicts[0]
        if not verdict:
            raise FailedError(GUEST)
        return verdict
    return "console: the last words of the hydrator"


def create(cloud, kind, name, flags):
    if name in cloud[kind]:
        raise FailedError(f"ERROR: (gcloud) The resource 'projects/p1/{kind}/{name}' already exists: HTTPError 409")
    if "metadata-from-file" in flags:
        flags["startup-script"] = Path(flags["metadata-from-file"].partition("=")[2]).read_text(encoding="utf-8")
    cloud[kind][name] = {"states": list(cloud["new"][kind]), "flags": flags}
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
