"""Names for what the static screen has refused: which exploit a finding most likely serves.

The screen says what is not allowed (`imports os`); the text around says what for. A name never decides anything: it is
looked for only among submissions that are refused already.
"""

from __future__ import annotations

import re

from evaluate.passes.files import TaskPasses
from evaluate.passes.screen import Finding

#: Most telling first: (what occurs in a refused submission, the exploit).
_TELLS = tuple(
    (re.compile(pattern), exploit)
    for pattern, exploit in (
        (r"ptrace", "ptrace"),
        (r"/proc/", "process_memory"),
        (r"os\._exit|atexit|signal\.signal|os\.kill|sys\.exit", "early_exit"),
        (r"os\.fork|multiprocessing", "fork_bomb"),
        (r"os\.write|os\.dup", "forged_result"),
        (r"CACHE_DIR", "cache_poisoning"),
        (r"elapsed_time\s*=|perf_counter\s*=|synchronize\s*=|time\.time\s*=", "timer_patch"),
        (r"statistics\.\w+\s*=", "statistics_patch"),
        (r"\.(all|is)close\s*=|assert_close\s*=|__eq__\s*=|torch\.equal\s*=", "comparison_patch"),
        (r"compare\.tolerance\s*=|compare\.agreement\s*=", "tolerance_edit"),
        (r"load_inline|cpp_extension", "inline_extension"),
        (r"exec\(|eval\(|base64", "dynamic_code"),
        (r"set_num_threads|allow_tf32|set_default_dtype|set_float32_matmul_precision", "global_state"),
        (r"get_objects|_getframe|sys\.modules|f_locals", "introspection"),
        (r"Thread\(", "background_thread"),
        (r"as_subclass|_make_subclass|\(torch\.Tensor\):", "lazy_tensor"),
        (r"data_ptr\(\)|\bid\(", "cached_by_pointer"),
        (r"torch\.load|torch\.save|listdir|open\(", "filesystem"),
        (r"torch\.compile", "compile_in_replacement"),
    )
)


def named(findings: tuple[Finding, ...], passes: TaskPasses) -> tuple[str, Finding]:
    """(exploit, the finding to show) for a submission with at least one finding."""
    text = "\n".join(passes.sources.values())
    for pattern, exploit in _TELLS:
        if pattern.search(text):
            return exploit, findings[0]
    return findings[0].exploit, findings[0]
