"""The closed list of failure classes, and the function that assigns them.

A model that cannot be captured is a row in `failures`, never the end of a run. Every class says what a reader can do
about it; a failure that fits none is `unclassified`, and its exception text is there to extend the list from.
"""

from __future__ import annotations

import re
import traceback

from extract.model import Failure
from warehouse.graph.record import RecordError

#: class -> what it means and what helps.
CLASSES: dict[str, str] = {
    "missing_dependency": "the model needs a package that is not installed",
    "needs_download": "building asks for files from a hub; captures never download",
    "config_invalid": "the default configuration does not build this class alone",
    "build_error": "the constructor raised in every build mode",
    "inputs_unknown": "no valid example inputs are known for this signature",
    "forward_error": "the model's own code refused the example inputs",
    "data_dependent": "control flow or shapes depend on tensor values that fake tensors do not have",
    "fake_unsupported": "an operator has no fake (meta) implementation, or mixes devices under it",
    "trace_error": "Dynamo could not trace the model",
    "operator_not_listed": "the graph holds an operator that is not on the allow-list (warehouse/graph/operators.txt)",
    "graph_not_serialisable": "the graph holds a value that a record cannot hold",
    "round_trip_mismatch": "the record did not rebuild into the same graph",
    "subgraph_differs": "a subgraph run alone did not give the bits that it gives in its graph",
    "node_budget": "the graph grew past the node budget (an unrolled scan, as a rule)",
    "no_graph": "the model ran but Dynamo compiled no graph",
    "sample_incomplete": "a published sample lacks one of the files of its layout",
    "sample_refused": "a published sample's file is a link, no regular file, too large, or not text",
    "syntax_unsupported": "model.py of a published sample holds something that no recorded graph can say",
    "meta_invalid": "a published sample describes an argument of its graph wrongly, or not at all",
    "hub_no_access": "gated or private on the Hub: accept its terms there and give a token, or leave it",
    "hub_missing": "the Hub has no config.json for the model at this commit",
    "hub_answer_invalid": "the Hub's entry or config.json is malformed, cut short or far too large",
    "hub_unavailable": "the Hub went on refusing this one entry; the next refresh asks again",
    "config_refused": "the model's configuration holds values that no model has",
    "library_unsupported": "a model on the Hub of a library that is not built here",
    "architecture_unknown": "the installed library has no such architecture (custom code on the Hub is never run)",
    "timeout": "the deadline passed",
    "out_of_memory": "the worker met its memory cap",
    "crash": "the worker died of a signal (segmentation fault, abort)",
    "exit": "the model's code ended the worker process",
    "killed": "the worker was killed from outside, twice",
    "unclassified": "none of the above; the exception text says more",
}


_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_ABSOLUTE = re.compile(r"(?<![\w./])(?:/[^\s/'\":,;()]+){2,}")
_PACKAGED = re.compile(r".*/(?:site|dist)-packages/")
_GENERATED = re.compile(r"<eval_with_key>\.\d+|(?<=__compiled_fn_)\d+\w*")  # counted per process
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_PROCESS = re.compile(r"\b(pid|PID|process)([ =:]+)\d+")

#: Exception type names (anywhere in the chain of causes) -> class.
_BY_TYPE = {
    "MemoryError": "out_of_memory",
    "OutOfMemoryError": "out_of_memory",
    "ModuleNotFoundError": "missing_dependency",
    "ImportError": "missing_dependency",
    "DataDependentOutputException": "data_dependent",
    "DynamicOutputShapeException": "data_dependent",
    "GuardOnDataDependentSymNode": "data_dependent",
    "UnsupportedFakeTensorException": "fake_unsupported",
    "UnsupportedOperatorException": "fake_unsupported",
    "MetadataMismatchError": "fake_unsupported",
    "LocalEntryNotFoundError": "needs_download",
    "OfflineModeIsEnabled": "needs_download",
    "RepositoryNotFoundError": "needs_download",
    "ConnectionError": "needs_download",
    "ConnectError": "needs_download",
    "gaierror": "needs_download",
    "URLError": "needs_download",
    "SystemExit": "exit",
}
#: Words in an exception's text -> class; the first that fits.
_BY_TEXT: tuple[tuple[str, str], ...] = (
    ("can't allocate memory", "out_of_memory"),
    ("DefaultCPUAllocator", "out_of_memory"),
    ("but it was not found in your environment", "missing_dependency"),
    ("offline mode", "needs_download"),
    ("couldn't connect to", "needs_download"),
    ("Couldn't connect to", "needs_download"),
    ("is not a local folder and is not a valid model identifier", "needs_download"),
    ("Can't load", "needs_download"),
    ("urlopen error", "needs_download"),
    ("name resolution", "needs_download"),
    ("Name or service not known", "needs_download"),
    ("Network is unreachable", "needs_download"),
    ("Max retries exceeded", "needs_download"),
    ("Cannot copy out of meta tensor", "data_dependent"),
    ("cannot be called on meta tensors", "data_dependent"),
    ("data-dependent", "data_dependent"),
    ("data dependent", "data_dependent"),
    ("aten.nonzero", "data_dependent"),
    ("aten._local_scalar_dense", "data_dependent"),
    ("Could not guard on", "data_dependent"),
    ("Runtime assertion failed for expression u", "data_dependent"),
    ("nbacked symbol", "data_dependent"),
    ("Expected bool, got FakeTensor", "data_dependent"),
    ("Cannot re-initialize CUDA", "fake_unsupported"),
    ("Unhandled FakeTensor Device Propagation", "fake_unsupported"),
    ("Mixing fake modes", "fake_unsupported"),
    ("Please convert all Tensors to FakeTensors", "fake_unsupported"),
    ("no NVIDIA driver", "fake_unsupported"),
    ("not linked with support for", "fake_unsupported"),
    ("Torch not compiled with CUDA", "fake_unsupported"),
    ("Meta tensors", "fake_unsupported"),
    ("meta kernel", "fake_unsupported"),
    ("meta implementation", "fake_unsupported"),
)
_PACKAGE_WANTED = re.compile(r"requires? the \S+ (?:library|package)\b|pip install \S")
#: What a constructor raises when a default configuration makes no sense by itself.
_CONFIGURATION = re.compile(r"\bconfig|_config\b|configuration|NoneType", re.IGNORECASE)
_TORCH = re.compile(r"(?:^|/)torch/")
_OURS = re.compile(r"/extract/(?:build|calls|capture|dynamo|job|repeats|verify|worker|workers|zygote)\.py$")


def clean_text(text: str, limit: int = 500) -> str:
    """`text` without what differs from run to run or machine to machine: addresses, absolute paths, process numbers.

    At most six lines and `limit` characters are kept.
    """
    text = str(text)[: 40 * limit]  # some messages print whole tensors
    lines = [line.rstrip()[: 4 * limit] for line in text.splitlines() if line.strip()][:6]
    text = _ADDRESS.sub("0x…", "\n".join(lines).strip())
    text = _GENERATED.sub("…", _ABSOLUTE.sub(_short_path, text))
    text = _PROCESS.sub(r"\1\2…", _TEMPORARY.sub("tmp…", text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _short_path(found: re.Match[str]) -> str:
    """The path inside its package, or the last two parts of any other."""
    path = found.group()
    inside = _PACKAGED.sub("", path)
    return inside if inside != path else "/".join(path.split("/")[-2:])


def _text(error: BaseException) -> str:
    """What an exception says; model code may have made even that an error."""
    try:
        return str(error)
    except Exception as problem:
        return f"its text cannot be had: {type(problem).__name__}"


def classify(error: BaseException, stage: str) -> Failure:
    """The failure that an exception means at a stage (build, inputs, trace, record, worker)."""
    chain = _chain(error)
    root = chain[-1]
    recording = any(isinstance(one, RecordError) for one in chain)  # raised by the backend, inside the trace
    return Failure(
        kind=_kind(error, chain, stage),
        stage="record" if recording else stage,
        exception=type(root).__name__,
        message=clean_text(_text(root) or _text(error)),
        place=_place(chain),
    )


def _kind(error: BaseException, chain: list[BaseException], stage: str) -> str:
    if isinstance(error, RecordError):
        return error.kind
    for one in chain:
        if isinstance(one, RecordError):
            return one.kind
        for kin in type(one).__mro__:
            if kin.__name__ in _BY_TYPE:
                return _BY_TYPE[kin.__name__]
        text = _text(one)
        for words, kind in _BY_TEXT:
            if words in text:
                return kind
        if _PACKAGE_WANTED.search(text):
            return "missing_dependency"
    if stage == "inputs":
        return "inputs_unknown"
    if stage == "build":
        root = chain[-1]
        mistaken = isinstance(root, TypeError | ValueError | AttributeError | KeyError | AssertionError)
        return "config_invalid" if mistaken and _CONFIGURATION.search(_text(root)) else "build_error"
    if stage == "trace":
        from_dynamo = [type(one).__module__.startswith(("torch._dynamo", "torch.fx")) for one in chain]
        if all(from_dynamo):
            # Dynamo reports an operator that refuses its fake operands, which is the model's doing, as its own error.
            refused = "TorchRuntimeError" in {type(one).__name__ for one in chain}
            return "forward_error" if refused else "trace_error"
        if isinstance(chain[-1], RecursionError) or from_dynamo[-1]:
            return "trace_error"
        internal = "InternalTorchDynamoError" in {type(one).__name__ for one in chain}
        return "trace_error" if internal else "forward_error"
    return "unclassified"


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what it was raised from, outermost first."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and not any(one is known for known in chain) and len(chain) < 20:
        chain.append(one)
        inner = getattr(one, "inner_exception", None)
        one = one.__cause__ or (inner if isinstance(inner, BaseException) else None)
    return chain


def _place(chain: list[BaseException]) -> str:
    """`file:line in function` of the innermost frame outside torch and this package's machinery."""
    for one in reversed(chain):
        frames = traceback.extract_tb(one.__traceback__)
        for frame in reversed(frames):
            generated = frame.filename.startswith("<")  # neither a model's file nor the same in every run
            if not generated and not _TORCH.search(frame.filename) and not _OURS.search(frame.filename):
                return f"{clean_text(frame.filename)}:{frame.lineno} in {frame.name}"
    return _user_code(chain)


def _user_code(chain: list[BaseException]) -> str:
    """The last line of Dynamo's own "from user code" report."""
    for one in chain:
        found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', _text(one))
        if found:
            file, line, name = found[-1]
            return f"{clean_text(file)}:{line} in {name}"
    return ""
