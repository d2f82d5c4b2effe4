"""The tables of judged submissions: `evaluations`, what the judge found case by case, and `scores`, what follows.

Rows of `evaluations` are written by the judge and checked by evaluate/verdict.py, which says which columns each verdict
needs and forbids. Rows of `scores` follow from them by evaluate/score. Formulas and protocol: docs/scores.md.
"""

from __future__ import annotations

import pyarrow as pa

from warehouse.table import Table

_S, _I32, _I64, _B, _F = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.float64()

#: What a row of either table is about; rows that differ in one of these are never compared with each other unasked.
_ORIGIN = (
    ("submission", _S, "hash of the submission's files, or baseline:NAME"),
    ("submission_name", _S, "what the submission calls itself: the name of its folder, or baseline:NAME"),
    ("run", _S, "id of the scoring run; a submission may be scored many times"),
    ("bench", _S, "version of PassBench: name and content hash"),
    ("device", _S, "cpu, or the GPU's name; rows of different devices are never mixed"),
    ("lowering", _S, "how the rewritten graph was run: direct, dynamo or inductor"),
)


def _clocks(who: str, what: str) -> tuple[tuple[str, pa.DataType, str], ...]:
    return (
        (f"{who}_host_us", _F, f"{what}, end to end by the host's clock, microseconds, median; GPU only"),
        (f"{who}_host_spread", _F, "interquartile range / median; GPU only"),
        (f"{who}_device_us", _F, f"{what}, the device's work alone, microseconds, median; GPU only"),
        (f"{who}_device_spread", _F, "interquartile range / median; GPU only"),
    )


EVALUATIONS = Table(
    "evaluations",
    "What the judge found: a row each case of a run; evaluate/verdict.py ties columns to verdicts.",
    (
        *_ORIGIN,
        ("task", _S, "the PassBench task"),
        ("stratum", _S, "stratum of the task, as PassBench states it"),
        ("subgraph_hash", _S, "the subgraph of the case"),
        ("case", _S, "which case of the subgraph: given, or the name of a held-out variant"),
        ("dtype", _S, "floating-point dtype of the case"),
        ("verdict", _S, "one of evaluate/verdict.py: clean, suspect, hack, wrong, no_match, ..."),
        ("exploit", _S, "name of the exploit; only of hack and suspect"),
        ("error_class", _S, "what ES_t may forgive: accuracy, nan, type, shape, runtime or compile; else null"),
        ("stage", _S, "where it ended: screen, load, match, compile, check, time, recheck or worker; null when clean"),
        ("detail", _S, "first line of what went wrong; null when clean"),
        ("correct_t", _I32, "strictest tolerance level at which all outputs are correct, -10 to 5; null at none"),
        ("max_abs", _F, "largest absolute error against the reference"),
        ("max_rel", _F, "largest relative error against the reference"),
        ("eager_t", _I32, "strictest tolerance level at which eager itself is correct"),
        ("reference", _S, "float64, or eager where the graph has no float64 form"),
        ("compared", pa.list_(_S), "distributions of inputs on which correctness was judged"),
        ("checked_calls", _I32, "timed calls whose outputs were checked, drawn at random"),
        ("rules", pa.list_(_S), "passes that matched, in the order of their first site"),
        ("sites", _I32, "sites rewritten"),
        ("ops", _I32, "operators of the subgraph"),
        ("ops_covered", _I32, "operators replaced"),
        ("time_covered", _F, "share of eager's device time that the replaced operators took; GPU only"),
        ("miss", _S, "nearest miss: which node, expected, found, what to change; when nothing matched"),
        *_clocks("eager", "eager"),
        ("baseline", _S, "what the baseline is: inductor"),
        *_clocks("baseline", "the baseline"),
        *_clocks("pass", "the submission"),
        ("host_samples", _I32, "calls timed by the host's clock, the fewest of all; GPU only"),
        ("device_samples", _I32, "calls timed by the device's clock, the fewest of all; GPU only"),
        ("dropped_samples", _I32, "samples dropped because the device was throttled; GPU only"),
        ("no_device_time", _S, "why there is no device time; null when there is"),
        ("speedup_host", _F, "eager_host_us / pass_host_us"),
        ("speedup_device", _F, "eager_device_us / pass_device_us"),
        ("baseline_speedup_host", _F, "eager_host_us / baseline_host_us"),
        ("baseline_speedup_device", _F, "eager_device_us / baseline_device_us"),
        ("floor_us", _F, "least device time for the bytes that must move, microseconds; GPU only"),
        ("compile_seconds", _F, "from the rewritten graph to its first finished call; not part of any speedup"),
        ("judge_seconds", _F, "wall-clock seconds of the whole case"),
        ("layers", pa.list_(_S), "containment layers that were active; results with fewer are not comparable"),
        ("driver", _S, "version of the GPU's driver; null on a CPU"),
        ("cuda", _S, "version of CUDA that torch was built for; null on a CPU"),
        ("torch", _S, "version of torch"),
        ("triton", _S, "version of Triton"),
        ("python", _S, "version of Python"),
        ("host", _S, "model of the host's processor"),
        ("sm_mhz", _I32, "clock of the multiprocessors as read after timing; GPU only"),
        ("memory_mhz", _I32, "memory clock as read after timing; GPU only"),
        ("throttle", _I64, "throttle reasons as read after timing, NVML's bit mask; GPU only"),
        ("temperature_c", _I32, "temperature as read after timing; GPU only"),
        ("seed", _I64, "seed of the run; nonces of single calls follow from it and are never known to a pass"),
        ("judged_at", pa.timestamp("us", tz="UTC"), "when the verdict was given"),
    ),
    ("bench", "device", "lowering", "submission", "run", "task", "subgraph_hash", "case"),
)

SCORES = Table(
    "scores",
    "Scores of submissions by evaluate/score: a row each level, clock and configuration of a run; docs/scores.md.",
    (
        *_ORIGIN,
        ("level", _S, "whole: all tasks; stratum: those of one stratum; task: one task"),
        ("name", _S, "the stratum or task; empty for the whole"),
        ("clock", _S, "host; device; none: correctness alone, every correct case counts as speedup 1"),
        ("configuration", _S, "id of the score configuration: a hash of configuration_json"),
        ("configuration_json", _S, "canonical JSON: p, b, classes, weights, clock and what correct means"),
        ("pool", _S, "tasks: geometric mean of the tasks' scores; subgraphs: over all cases at once"),
        ("cases", _S, "hash of which cases were judged; scores over other cases are not comparable"),
        ("samples", _I32, "cases that count"),
        ("tasks", _I32, "tasks that count"),
        ("left_out", _I32, "cases left out: task_defect and harness_error"),
        ("complete", _B, "whether no case was left out as harness_error"),
        ("aggregate", _F, "AS; null where the configuration has no weight for a level"),
        ("aggregate_low", _F, "lower end of the 95% bootstrap interval of AS; null for a single unit"),
        ("aggregate_high", _F, "upper end of the 95% bootstrap interval of AS; null for a single unit"),
        ("gmean", _F, "geometric mean of the speedups of correct cases; null when none is correct"),
        ("gmean_low", _F, "lower end of its interval"),
        ("gmean_high", _F, "upper end of its interval"),
        ("correct", _F, "share of correct cases"),
        ("correct_low", _F, "lower end of its interval"),
        ("correct_high", _F, "upper end of its interval"),
        ("fast", _S, "fast_p as JSON: for each p, share, low and high of cases both correct and faster than p"),
        ("curve", _S, "JSON: for each level t, S_t, ES_t with its interval, and the share correct"),
        ("verdicts", _S, "JSON: how many cases have which verdict, those left out included"),
        ("layers", pa.list_(_S), "containment layers active in every case"),
        ("scored_at", pa.timestamp("us", tz="UTC"), "when it was computed"),
    ),
    ("bench", "device", "lowering", "submission", "run", "configuration", "clock", "pool", "level", "name"),
)
