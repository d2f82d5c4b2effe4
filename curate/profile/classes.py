"""What can become of one profiled subgraph: a closed list.

`ok` has figures. Every other class says why there are none; the row keeps what was learnt before, such as the groups of
the scheduler when the compilation worked and the measuring did not.
"""

from __future__ import annotations

OK = "ok"
CLASSES = {
    OK: "measured",
    "record_invalid": "the stored record cannot be rebuilt, or its recipes draw no inputs",
    "too_large": "its inputs take more memory than a profile may",
    "eager_error": "it does not run in eager mode",
    "non_finite": "its outputs hold NaN or infinity for inputs drawn by its own recipes",
    "degenerate": "none of its outputs depends on its inputs",
    "compile_error": "Inductor does not compile it as one graph",
    "inductor_error": "what Inductor made does not run",
    "out_of_memory": "the device or the worker ran out of memory",
    "timeout": "compiling or measuring took longer than allowed",
    "crash": "the worker process died",
    "device_error": "the device refused to go on: an illegal access, or a lost driver",
}
#: Perhaps not the subgraph's doing: tried again by the next run.
RETRIED = frozenset({"device_error"})
