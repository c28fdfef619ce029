"""What the pack keeps of the settings that the engine sends. That it gets them: tests/engine/test_policies.py."""

from __future__ import annotations

from policies.__main__ import readable


def test_secret_settings_are_not_kept() -> None:
    sent = {"spotrail:waivers": "[]", "spotrail:slack_token": "xoxb-invented", "gcp:project": "acme"}
    assert readable(sent, ["spotrail:slack_token"]) == {"spotrail:waivers": "[]", "gcp:project": "acme"}
