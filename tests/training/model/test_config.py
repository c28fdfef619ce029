"""Configs: what makes no model is refused, and config.json says all of it exactly."""

from __future__ import annotations

import json

import pytest

from tests.training.model.patterns import BASED, EVERY_MIXER, SOFTMAX, WINDOW, tiny
from training.errors import TrainingError
from training.model.config import CheckpointPolicy, ModelConfig


def test_every_field_comes_back_exactly() -> None:
    config = tiny(
        *EVERY_MIXER,
        norm_eps=1.0000000000000002e-5,
        z_loss=0.0,
        tie_embeddings=False,
        checkpoint_policy=CheckpointPolicy.DOTS,
    )
    text = config.to_json()
    assert ModelConfig.from_json(text) == config
    assert ModelConfig.from_json(text).to_json() == text
    assert hash(ModelConfig.from_json(text)) == hash(config)


def test_the_file_has_every_field_by_its_name() -> None:
    content = json.loads(tiny(BASED, WINDOW).to_json())
    assert content["schema"] == "spotrail.model/1"
    assert content["mixers"][0] == {"type": "based", "n_heads": 2, "d_feature": 4, "taps": 4, "chunk": 4}
    assert content["mixers"][1]["window"] == 3
    assert content["checkpoint_policy"] == "none"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_modell": 16}, r"^export/config\.json: d_modell .*did you mean d_model\?"),
        ({"mixers": [{"type": "softmacs", "n_heads": 2}]}, r"mixers\.0\.type is 'softmacs'.*did you mean softmax\?"),
        ({"mixers": [{"type": "softmax", "n_head": 2}]}, r"mixers\.0\.n_head .*did you mean n_heads\?"),
        ({"mixers": [{"type": "softmax", "n_heads": 2, "n_kv_heads": 3}]}, "n_kv_heads is 3"),
        ({"mixers": []}, "the pattern is empty"),
        ({"d_model": "16"}, "d_model is '16', not a whole number"),
        ({"d_model": True}, "d_model is true, not a whole number"),
        ({"tie_embeddings": 1}, "tie_embeddings is 1, not true or false"),
        ({"checkpoint_policy": "dot"}, "checkpoint_policy is 'dot'.*did you mean dots"),
        ({"schema": "spotrail.model/2"}, r'schema is "spotrail\.model/2"; this version reads "spotrail\.model/1"'),
        ({"vocab_size": 0}, "vocab_size: 0 makes no model; it is 1 to 2,147,483,647"),
        ({"d_model": 10**400}, "d_model: a number of 401 digits makes no model"),
        (
            {"n_layers": 3, "mixers": [{"type": "linear", "n_heads": 1}] * 2},
            "3 is no multiple of the 2 .*Choose 2 or 4",
        ),
        ({"n_layers": 1, "mixers": [{"type": "linear", "n_heads": 1}] * 2}, "Choose 2 layers"),
        ({"norm_eps": 0}, "norm_eps: 0.0 does not keep a norm from dividing by 0"),
        ({"z_loss": -1}, "z_loss: -1.0 would push the logits apart"),
    ],
)
def test_what_it_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    content = json.loads(tiny(SOFTMAX).to_json()) | changes
    with pytest.raises(TrainingError, match=message):
        ModelConfig.from_json(json.dumps(content), where="export/config.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is list, and a config is an object"),
        ("{}", "schema is null"),
        ('{"schema": 1, "schema": 2}', "schema stands twice"),
        ('{"z_loss": NaN}', "NaN is no number of JSON"),
    ],
)
def test_text_that_is_no_config_is_refused(text: str, message: str) -> None:
    with pytest.raises(TrainingError, match=rf"^config\.json: {message}"):
        ModelConfig.from_json(text)


def test_a_field_that_is_missing_is_named() -> None:
    content = json.loads(tiny(SOFTMAX).to_json())
    del content["vocab_size"]
    with pytest.raises(TrainingError, match="vocab_size is missing"):
        ModelConfig.from_json(json.dumps(content))
