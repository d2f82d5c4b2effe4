"""Every table of a warehouse: its columns, their Arrow types, and a comment on each.

One declaration serves the Parquet writers, the DuckDB views and the documentation. Sort keys are stated because
files are written sorted: equal rows give equal bytes.
"""

from __future__ import annotations

import pyarrow as pa

from warehouse.cuttings import DECOMPOSITIONS, SUBGRAPH_FAILURES, SUBGRAPH_OCCURRENCES, SUBGRAPHS
from warehouse.judged import EVALUATIONS, SCORES
from warehouse.passbench import TASK_MEMBERS, TASKS
from warehouse.table import SCHEMA_VERSION, Table

__all__ = ["SCHEMA_VERSION", "TABLES", "Table"]

_S, _I32, _I64, _B, _F = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.float64()

MODELS = Table(
    "models",
    "Every model name seen, with the configuration it would be built from.",
    (
        ("source", _S, "source that lists and builds the model: timm, transformers, torchvision, ..."),
        ("name", _S, "name inside the source"),
        ("config_hash", _S, "xxh3-128 of what would be built; equal hashes are captured once"),
        ("family", _S, "model family, for example resnet or bert"),
        ("task", _S, "what the head does, for example image-classification"),
        ("modality", _S, "vision, text, audio, video, multimodal or time-series"),
        ("revision", _S, "version of the defining library, or commit of a hub repository"),
        ("license", _S, "license of the model definition as the source states it"),
        ("config", _S, "canonical JSON that config_hash covers"),
    ),
    ("source", "name", "revision"),
)

HUB_MODELS = Table(
    "hub_models",
    "Every model that a Hub listed, also those that are not captured; one row for each revision and class seen.",
    (
        ("name", _S, "repository, author/model; escaped where it is no name that a repository can have"),
        ("revision", _S, "commit that the listing named; empty where it named none"),
        ("class", _S, "why there is no configuration, a class of extract/failures.py; empty when there is one"),
        ("message", _S, "what the class means here"),
        ("config_hash", _S, "configuration in `models`; null when there is none"),
        ("library", _S, "library as the Hub says; none when it does not"),
        ("task", _S, "pipeline tag, for example text-generation"),
        ("license", _S, "license as tagged on the Hub"),
        ("base_model", _S, "model that this one comes from, as tagged"),
        ("downloads", _I64, "downloads in the last 30 days when the revision was first seen"),
        ("parameters", _I64, "parameters by the listing's safetensors summary; null when it has none"),
        ("modified", _S, "day of the last change, YYYY-MM-DD"),
    ),
    ("name", "revision", "class"),
)

CAPTURES = Table(
    "captures",
    "One row for each configuration and variant that was traced, failed ones included.",
    (
        ("capture_id", _S, "xxh3-128 of config_hash and variant: the name of this capture"),
        ("config_hash", _S, "which configuration"),
        ("source", _S, "source of the model that stood for the configuration"),
        ("name", _S, "name of the model that stood for the configuration"),
        ("variant", _S, "mode-shapes-dtype-device, for example eval-static-float32-cuda"),
        ("mode", _S, "eval or train"),
        ("shapes", _S, "static or symbolic"),
        ("dtype", _S, "floating-point type of weights and inputs"),
        ("device", _S, "device traced for; cuda is traced with fake tensors and needs no GPU"),
        ("status", _S, "complete; partial: some graphs, then a failure; failed: no graph"),
        ("build", _S, "how the module was built: empty, meta or real; imported: read from a published sample"),
        ("verified", _S, "nodes: each graph compared node by node after reload; outputs: also run against the module"),
        ("graph_count", _I32, "graphs that Dynamo compiled"),
        ("break_count", _I32, "graph breaks"),
        ("break_reasons", pa.list_(_S), "reason of each graph break, in order"),
        ("node_count", _I64, "nodes of all graphs together"),
        ("parameters", _I64, "scalar parameters of the module"),
        ("torch_version", _S, "torch that traced it"),
        ("library_version", _S, "version of the library that defines the model"),
        ("hash_version", _I32, "version of the hash definition"),
        ("record_version", _I32, "version of the graph record"),
    ),
    ("capture_id",),
)

GRAPHS = Table(
    "graphs",
    "Unique graphs: one row for each graph_hash.",
    (
        ("graph_hash", _S, "operators, literals, wiring, dtypes and shapes: the identity"),
        ("structure_hash", _S, "the same without dtypes and tensor sizes"),
        ("template_hash", _S, "the same without numeric literals too"),
        ("op_hash", _S, "operator sequence in canonical order"),
        ("capture_id", _S, "capture whose graph is stored (least by priority, then id)"),
        ("graph_index", _I32, "which graph of that capture"),
        ("node_count", _I32, "rows in nodes, nested graphs included"),
        ("op_count", _I32, "calls among them"),
        ("input_count", _I32, "inputs that are neither parameter, buffer nor symbol"),
        ("parameter_count", _I32, "parameters and buffers among the placeholders"),
        ("symbolic", _B, "whether any size is symbolic"),
        ("effect_count", _I32, "mutating, random or otherwise effectful nodes"),
        ("dtypes", pa.list_(_S), "dtypes of all tensors, sorted"),
        ("device", _S, "device the graph was traced for"),
        ("ops", pa.list_(_S), "distinct operators, sorted"),
        ("hash_version", _I32, "version of the hash definition"),
    ),
    ("graph_hash",),
)

NODES = Table(
    "nodes",
    "The graphs themselves: one row a node, in reading order (see warehouse/graph/record.py).",
    (
        ("graph_hash", _S, "graph that the node belongs to"),
        ("scope", _S, "empty for the graph itself; body_0, body_0.body_1 ... for nested graphs"),
        ("idx", _I32, "row number inside its scope, from 0; a reference %k points k rows up"),
        ("op", _S, "placeholder, call_function, call_method, get_attr, constant or output"),
        ("target", _S, "public dotted name of the operator"),
        ("args", _S, "positional arguments as JSON; the string %k is the value of the node k rows above"),
        ("kwargs", _S, "keyword arguments as JSON"),
        ("value", _S, "kind of value: tensor, tuple, symint, none ..."),
        ("dtype", _S, "dtype of a tensor"),
        ("shape", pa.list_(_I64), "sizes of a tensor; symbolic ones by their example value"),
        ("expr", _S, "symbolic sizes or expression; null when static"),
        ("stride", pa.list_(_I64), "strides in elements; null when contiguous"),
        ("device", _S, "device type of a tensor"),
        ("elements", _S, "JSON list of [dtype, shape] for the members of a tuple"),
        ("effect", _I32, "order token of mutating and random nodes; null for pure nodes"),
        ("name", _S, "placeholder: parameter path or argument name"),
        ("role", _S, "placeholder: parameter, buffer, input or symbol"),
        ("slot", _I32, "placeholder: position in the call signature"),
        ("recipe", _S, "placeholder: how to draw valid values (JSON)"),
    ),
    ("graph_hash", "scope", "idx"),
)

SUBGRAPH_NODES = Table(
    "subgraph_nodes",
    "The subgraphs themselves: rows as in nodes, graph_hash being the subgraph's.",
    NODES.columns,
    NODES.sort,
)

OCCURRENCES = Table(
    "occurrences",
    "Every place where a graph occurs: duplicates keep theirs too.",
    (
        ("graph_hash", _S, "the graph"),
        ("capture_id", _S, "capture in which it occurs"),
        ("graph_index", _I32, "which graph of that capture, from 0"),
        ("config_hash", _S, "configuration of that capture"),
    ),
    ("graph_hash", "capture_id", "graph_index"),
)

FAILURES = Table(
    "failures",
    "Every capture that did not complete, with its class.",
    (
        ("capture_id", _S, "capture that failed"),
        ("config_hash", _S, "which configuration"),
        ("source", _S, "source of the model"),
        ("name", _S, "name of the model"),
        ("variant", _S, "variant that failed"),
        ("class", _S, "one of the closed list in extract/failures.py"),
        ("stage", _S, "build, inputs, trace, record or worker"),
        ("exception", _S, "exception type, or the signal's name"),
        ("message", _S, "first lines of the exception, machine-specific parts removed"),
        ("place", _S, "file, line and function where it was raised"),
    ),
    ("capture_id",),
)

TIMINGS = Table(
    "timings",
    "Clock and memory readings of captures: measurements, kept apart so that data files are reproducible.",
    (
        ("capture_id", _S, "capture"),
        ("seconds", _F, "wall-clock seconds in all"),
        ("build_seconds", _F, "building the module and its inputs"),
        ("trace_seconds", _F, "Dynamo"),
        ("record_seconds", _F, "recording, verifying and hashing"),
        ("peak_mb", _F, "peak resident memory of the worker, MiB"),
        ("started_at", pa.timestamp("us", tz="UTC"), "when it began"),
    ),
    ("capture_id",),
    measured=True,
)

PROFILES = Table(
    "profiles",
    "What eager and Inductor take for a subgraph on a device; a row each subgraph, device and mode: docs/profiling.md.",
    (
        ("subgraph_hash", _S, "the subgraph"),
        ("device", _S, "cpu, or the GPU's name; figures of different devices are never mixed"),
        ("mode", _S, "mode of torch.compile: default, reduce-overhead or max-autotune"),
        ("class", _S, "ok, or why there are no figures: one of curate/profile/classes.py"),
        ("stage", _S, "where it ended: record, compile, gate, measure or worker; null when ok"),
        ("detail", _S, "first line of what went wrong; null when ok"),
        ("driver", _S, "version of the GPU's driver; null on a CPU"),
        ("cuda", _S, "version of CUDA that torch was built for; null on a CPU"),
        ("torch", _S, "version of torch"),
        ("triton", _S, "version of Triton"),
        ("python", _S, "version of Python"),
        ("host", _S, "model of the host's processor"),
        ("cores", _I32, "cores that the process could use"),
        ("sm_mhz", _I32, "clock of the multiprocessors as read after timing; GPU only"),
        ("memory_mhz", _I32, "memory clock as read after timing; GPU only"),
        ("throttle", _I64, "throttle reasons as read after timing, NVML's bit mask; GPU only"),
        ("temperature_c", _I32, "temperature as read after timing; GPU only"),
        ("seed", _I64, "seed of the inputs"),
        (
            "compile_seconds",
            _F,
            "from the first look at the graph to loaded kernels, other compilations running beside",
        ),
        ("scheduler_kernels", _I32, "kernels that Inductor's scheduler made after fusion, extern ones not counted"),
        ("extern_kernels", _I32, "calls of ready-made kernels in the compiled graph: matrix products and their kin"),
        ("groups", _S, "JSON list of the scheduler's groups: kind (kernel, extern, view) and the record rows in each"),
        ("eager_kernels", _I32, "kernels that one eager call launches; GPU only"),
        ("eager_copies", _I32, "memory copies and fills of one eager call; GPU only"),
        ("inductor_kernels", _I32, "kernels that one compiled call launches; GPU only"),
        ("inductor_copies", _I32, "memory copies and fills of one compiled call; GPU only"),
        ("counted_by", _S, "graph: nodes of a recorded CUDA graph; profiler: CUPTI; GPU only"),
        ("eager_host_us", _F, "end to end by the host's clock, microseconds, median"),
        ("eager_host_spread", _F, "interquartile range / median"),
        ("inductor_host_us", _F, "end to end by the host's clock, microseconds, median"),
        ("inductor_host_spread", _F, "interquartile range / median"),
        ("host_samples", _I32, "calls timed by the host's clock, the fewer of both, dropped ones left out"),
        ("eager_events_us", _F, "back-to-back calls, between CUDA events, microseconds, median; GPU only"),
        ("eager_events_spread", _F, "interquartile range / median; GPU only"),
        ("inductor_events_us", _F, "back-to-back calls, between CUDA events, microseconds, median; GPU only"),
        ("inductor_events_spread", _F, "interquartile range / median; GPU only"),
        ("events_samples", _I32, "calls timed by events, the fewer of both; GPU only"),
        ("eager_device_us", _F, "device work alone, by CUDA-graph replay, microseconds, median; GPU only"),
        ("eager_device_spread", _F, "interquartile range / median; GPU only"),
        ("inductor_device_us", _F, "device work alone, by CUDA-graph replay, microseconds, median; GPU only"),
        ("inductor_device_spread", _F, "interquartile range / median; GPU only"),
        ("device_samples", _I32, "replays kept, the fewer of both; GPU only"),
        ("device_repeats", _I32, "calls in one recorded graph; GPU only"),
        ("not_capturable", _S, "why there is no device time by replay; null when there is"),
        ("dropped_samples", _I32, "samples of all clocks dropped because the device was throttled"),
        ("eager_peak_bytes", _I64, "most memory that one eager call allocates; GPU only"),
        ("inductor_peak_bytes", _I64, "most memory that one compiled call allocates; GPU only"),
        ("bytes_read", _I64, "bytes of inputs that must be read at least"),
        ("bytes_written", _I64, "bytes of outputs that must be written at least"),
        ("copy_gbps", _F, "bandwidth of the largest plain copy, bytes read and written, GB/s; GPU only"),
        ("launch_us", _F, "time of the smallest plain copy, microseconds; GPU only"),
        ("floor_us", _F, "time of a plain copy that moves as many bytes, microseconds; GPU only"),
        ("headroom", _F, "inductor_device_us / floor_us; GPU only"),
        ("reference", _S, "float64, or eager where the graph has no float64 form; null for random graphs"),
        ("compared", pa.list_(_S), "distributions of inputs on which correctness was judged"),
        ("eager_t", _I32, "strictest tolerance level at which eager is correct, -10 to 5; null when at none"),
        ("eager_max_abs", _F, "largest absolute error of eager, inputs as the recipes say"),
        ("eager_max_rel", _F, "largest relative error of eager, inputs as the recipes say"),
        ("inductor_t", _I32, "strictest tolerance level at which Inductor is correct, -10 to 5; null when at none"),
        ("inductor_max_abs", _F, "largest absolute error of Inductor, inputs as the recipes say"),
        ("inductor_max_rel", _F, "largest relative error of Inductor, inputs as the recipes say"),
        ("inductor_problem", _S, "how Inductor's outputs differ in kind from eager's; null when they do not"),
        ("zero_passes", _B, "whether outputs of zeros would be correct at level -5"),
        ("constant_passes", _B, "whether outputs of one constant each would be correct at level -5"),
        ("copy_passes", _B, "whether each output equals an input, reshaped or not"),
        ("insensitive", pa.list_(_I64), "slots of inputs that change no output"),
        ("cause", _S, "where Inductor is slower than eager: host, device, both or none"),
    ),
    ("subgraph_hash", "device", "mode"),
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        MODELS,
        HUB_MODELS,
        CAPTURES,
        GRAPHS,
        NODES,
        OCCURRENCES,
        FAILURES,
        TIMINGS,
        SUBGRAPHS,
        SUBGRAPH_NODES,
        SUBGRAPH_OCCURRENCES,
        DECOMPOSITIONS,
        SUBGRAPH_FAILURES,
        PROFILES,
        TASKS,
        TASK_MEMBERS,
        EVALUATIONS,
        SCORES,
    )
}
