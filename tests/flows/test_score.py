"""`passnet score --samples`: the reference cases, and one line for what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Passnet, refused

CASES = Path(__file__).parent.parent / "evaluate/score/reference_cases.json"


def test_samples_of_a_file_are_scored(passnet: Passnet):
    code, out, err = passnet("score", "--samples", str(CASES), "--json")
    assert (code, err) == (0, "")
    expected = json.loads(CASES.read_text())["cases"]
    for found, case in zip(json.loads(out)["cases"], expected, strict=True):
        assert found["name"] == case["name"]
        assert found["ES_t"] == pytest.approx(case["ES_t"], abs=1e-9)
        assert found["AS"] is None if case["aggregate"] is None else found["AS"] == pytest.approx(case["aggregate"])


def test_a_person_gets_a_table(passnet: Passnet):
    code, out, _ = passnet("score", "--samples", str(CASES))
    assert code == 0 and "mixed errors, default" in out and "0.2090" in out


@pytest.mark.parametrize(
    "content, said",
    [(None, "No such file"), (b"\xff\xfe\x00", "UTF-8"), (b"{", "not JSON"), (b'{"cases": []}', "there are no cases")],
)
def test_a_file_that_cannot_be_scored_is_one_line(passnet: Passnet, tmp_path: Path, content: bytes | None, said: str):
    file = tmp_path / "cases.json"
    if content is not None:
        file.write_bytes(content)
    refused(passnet("score", "--samples", str(file)), said)


def test_nothing_to_score_is_one_line(passnet: Passnet):
    refused(passnet("score"), "--samples")
