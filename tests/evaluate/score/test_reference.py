"""S_t, ES_t and AS are those of the reference implementation and of hand-computed examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluate.score import Sample, ScoreConfiguration, figures
from evaluate.score.cases import CaseError, scored
from evaluate.verdict import ErrorClass

REFERENCE = (Path(__file__).parent / "reference_cases.json").read_text()
CASES = json.loads(REFERENCE)["cases"]
C = ErrorClass


@pytest.mark.parametrize("expected, found", zip(CASES, scored(REFERENCE), strict=True), ids=[c["name"] for c in CASES])
def test_both_forms_equal_the_reference(expected: dict, found: dict):
    for name in ("S_t", "ES_t"):
        for form in (name, f"{name}_closed"):
            assert found[form] == pytest.approx(expected[name], abs=1e-9, rel=0)
    assert found["AS"] == (None if expected["aggregate"] is None else pytest.approx(expected["aggregate"], abs=1e-9))


FIVE = [
    Sample(-10, 1.5),
    Sample(-5, 0.8),
    Sample(-2, 2.0),
    Sample(None, error=C.COMPILE),
    Sample(None, error=C.ACCURACY),
]


def test_five_graphs_by_hand():
    """Fast, slow, loose, not compiling and wrong: the values follow from the formulas with pencil and paper."""
    found = figures(FIVE, ScoreConfiguration())
    by_hand = {
        -10: (1.5 * 0.1**4) ** 0.2, -5: (1.5 * 0.8 * 0.1**3) ** 0.2, 0: (2.4 * 0.1**2) ** 0.2,
        1: (2.4 * 0.1) ** 0.2, 2: (2.4 * 0.1) ** 0.2, 3: 2.4**0.2, 4: 2.4**0.2,
    }  # fmt: skip
    for t, value in by_hand.items():
        assert found.es[t].value == pytest.approx(value, rel=1e-12)
    assert found.s[4] == pytest.approx((2.4 * 0.1**2) ** 0.2)  # S_t forgives nothing
    assert found.aggregate.value == pytest.approx(0.386, abs=5e-4)
    assert figures(FIVE, ScoreConfiguration(p=1.0)).aggregate.value == pytest.approx(0.370, abs=5e-4)
    assert figures(FIVE, ScoreConfiguration(b=0.001)).aggregate.value == pytest.approx(0.047, abs=5e-4)


def test_correctness_and_fast_p_count_at_the_stated_level():
    found = figures(FIVE, ScoreConfiguration(correct_at=-5, fast=(0.0, 1.0, 1.5)))
    assert found.correct.value == pytest.approx(2 / 5)
    assert [found.fast[p].value for p in (0.0, 1.0, 1.5)] == pytest.approx([0.4, 0.2, 0.0])  # faster than p, not equal
    assert found.gmean.value == pytest.approx((1.5 * 0.8) ** 0.5)
    assert found.share[-2] == pytest.approx(3 / 5) and found.share[-10] == pytest.approx(1 / 5)


@pytest.mark.parametrize("error, floor", [(C.ACCURACY, 0.147), (C.COMPILE, 0.111), (None, 0.1)])
def test_a_submission_that_fails_everywhere_gets_the_floor(error: ErrorClass | None, floor: float):
    found = figures([Sample(None, error=error)] * 3, ScoreConfiguration())
    assert found.aggregate.value == pytest.approx(floor, abs=5e-4)
    assert found.gmean.value is None and found.correct.value == 0


def test_doing_nothing_correctly_is_one():
    assert figures([Sample(-10, 1.0)] * 4, ScoreConfiguration()).aggregate.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "there are no cases"),
        ("{}", "there are no cases"),
        ("[1]", "case 0: not an object"),
        ('[{"name": "x"}]', r"case 0 \(x\): there are no samples"),
        ('[{"samples": [{"status": "splendid"}]}]', "known: correct"),
        ('[{"samples": [{"status": ["correct"]}]}]', "status"),
        ('[{"samples": [{"status": "correct", "speedup": 2}]}]', "correct_from_t is None"),
        ('[{"samples": [{"status": "correct", "speedup": 0, "correct_from_t": 0}]}]', "above 0"),
        ('[{"samples": [{"status": "correct", "speedup": -1, "correct_from_t": 0}]}]', "above 0"),
        ('[{"samples": [{"status": "correct", "speedup": NaN, "correct_from_t": 0}]}]', "finite"),
        ('[{"samples": [{"status": "correct", "speedup": 1e999, "correct_from_t": 0}]}]', "finite"),
        ('[{"samples": [{"status": "correct", "speedup": "2", "correct_from_t": 0}]}]', "not a number"),
        ('[{"samples": [{"status": "correct", "speedup": 2, "correct_from_t": 6}]}]', "from -10 to 5"),
        ('[{"b": 0, "samples": [{"status": "runtime_fail"}]}]', "b is 0.0"),
        ('[{"p": NaN, "samples": [{"status": "runtime_fail"}]}]', "p is nan"),
        ('[{"interpretation": "kind", "samples": [{"status": "runtime_fail"}]}]', "interpretation 'kind'"),
        ('{"weights": {"x": 1}, "cases": [{"samples": [{"status": "runtime_fail"}]}]}', "invalid literal"),
        ('{"weights": [1], "cases": [{"samples": [{"status": "runtime_fail"}]}]}', "case 0"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_case(text: str, said: str):
    with pytest.raises(CaseError, match=said) as error:
        scored(text)
    assert "\n" not in str(error.value)
