"""What a pass file may name: everything else is refused, by the name of the exploit that it would serve.

An allow-list, because a list of forbidden things is never whole. It keeps honest work possible: Triton kernels, and a
wrapper that allocates outputs, looks at shapes and strides, makes views and launches.
"""

from __future__ import annotations

#: Modules that may be imported, besides files of the same folder.
MODULES = frozenset({"torch", "triton", "math", "typing", "operator", "__future__"})
#: First part of a refused module's name -> exploit.
IMPORTS = {
    **dict.fromkeys(("socket", "urllib", "http", "requests", "ssl", "ftplib", "asyncio"), "network"),
    **dict.fromkeys(("subprocess", "pip", "ensurepip", "venv", "pty"), "package_installation"),
    **dict.fromkeys(("ctypes", "cffi", "mmap", "_ctypes", "cupy", "numba", "pycuda", "cuda"), "native_code"),
    **dict.fromkeys(("threading", "multiprocessing", "concurrent", "_thread", "queue", "signal"), "background_thread"),
    **dict.fromkeys(("gc", "inspect", "sys", "weakref", "traceback", "types", "builtins"), "introspection"),
    **dict.fromkeys(("os", "pathlib", "io", "tempfile", "shutil", "glob", "fcntl", "posix", "resource"), "filesystem"),
    **dict.fromkeys(("importlib", "runpy", "pkgutil", "imp", "zipimport"), "dynamic_import"),
    **dict.fromkeys(("time", "timeit", "datetime", "statistics", "random"), "timer"),
    **dict.fromkeys(("pickle", "marshal", "shelve", "base64", "codecs", "zlib", "ast", "code"), "dynamic_code"),
    **dict.fromkeys(("functools", "atexit", "contextlib", "collections", "copy"), "state_between_calls"),
    **dict.fromkeys(("evaluate", "warehouse", "curate", "extract", "flows"), "harness_import"),
}
#: Parts of torch and triton whose import is refused by a name of their own.
SUBMODULES = {
    "torch.utils.cpp_extension": "native_code",
    "torch._inductor": "compile_in_replacement",
    "torch._dynamo": "compile_in_replacement",
    "torch.multiprocessing": "background_thread",
    "torch.cuda": "side_stream",
    "torch.nn": "delegation",
    "triton.compiler": "native_code",
    "triton.runtime": "native_code",
    "triton.testing": "timer",
}
IMPORTABLE = frozenset({"triton.language", "triton.language.extra", "triton.language.extra.libdevice", "torch.fx"})

#: Builtins that no pass needs.
BUILTINS = {
    **dict.fromkeys(("exec", "eval", "compile"), "dynamic_code"),
    "__import__": "dynamic_import",
    **dict.fromkeys(("getattr", "setattr", "delattr", "hasattr", "vars", "dir", "type", "super"), "dynamic_attribute"),
    **dict.fromkeys(("globals", "locals", "breakpoint", "id", "hash", "memoryview"), "introspection"),
    **dict.fromkeys(("open", "input"), "filesystem"),
    **dict.fromkeys(("exit", "quit"), "early_exit"),
}
#: What a wrapper may name of torch: allocation, dtypes, layouts and what it needs to know about a device.
TORCH = frozenset(
    (
        "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
        "Tensor", "Size", "dtype", "device", "layout", "float16", "float32", "float64", "bfloat16", "half",
        "float", "double", "int8", "int16", "int32", "int64", "uint8", "int", "long", "short", "bool",
        "float8_e4m3fn", "float8_e5m2", "complex64", "complex128", "strided", "contiguous_format",
        "channels_last", "channels_last_3d", "preserve_format", "finfo", "iinfo", "fx", "fx.wrap",
        "cuda.get_device_properties", "cuda.current_device", "promote_types", "result_type", "broadcast_shapes",
    )
)  # fmt: skip
#: Names of torch that are refused by a name of their own; the rest is delegation.
TORCH_EXPLOITS = {
    "compile": "compile_in_replacement",
    "jit": "compile_in_replacement",
    "_inductor": "compile_in_replacement",
    "_dynamo": "compile_in_replacement",
    "cuda.Stream": "side_stream",
    "cuda.stream": "side_stream",
    "cuda.set_stream": "side_stream",
    "cuda.Event": "timer_patch",
    "cuda.synchronize": "timer_patch",
    "cuda.CUDAGraph": "side_stream",
    "backends": "global_state",
    "set_default_dtype": "global_state",
    "set_float32_matmul_precision": "global_state",
    "use_deterministic_algorithms": "global_state",
    "set_num_threads": "global_state",
    "manual_seed": "global_state",
    "load": "filesystem",
    "save": "filesystem",
    "from_file": "filesystem",
    "hub": "network",
    "ops": "delegation",
    "utils": "native_code",
    "allclose": "delegation",
}
#: Methods of tensors that a wrapper may call: shape, strides, views, allocation.
METHODS = frozenset(
    (
        "size", "stride", "dim", "numel", "nelement", "ndimension", "element_size", "is_contiguous",
        "is_floating_point", "is_complex", "storage_offset", "view", "reshape", "permute", "transpose", "t",
        "expand", "expand_as", "unsqueeze", "squeeze", "flatten", "unflatten", "as_strided", "narrow", "select",
        "view_as", "movedim", "swapaxes", "detach", "contiguous", "new_empty", "new_empty_strided", "new_zeros",
        "new_ones", "new_full", "get_device", "is_cuda",
    )
)  # fmt: skip
#: Methods refused by a name of their own.
METHOD_EXPLOITS = {
    "data_ptr": "cached_by_pointer",
    "untyped_storage": "cached_by_pointer",
    "set_": "input_mutation",
    "record_stream": "side_stream",
    "register_hook": "monkeypatch",
    "as_subclass": "lazy_tensor",
    "_make_subclass": "lazy_tensor",
    "_make_wrapper_subclass": "lazy_tensor",
    "numpy": "delegation",
    "item": "host_computation",
    "tolist": "host_computation",
    "cpu": "host_computation",
}
#: Decorators by their dotted names.
DECORATORS = frozenset({"triton.jit", "triton.autotune", "triton.heuristics", "torch.fx.wrap", "fx.wrap", "jit"})
#: Calls that a module-level constant may be made with.
CONSTANTS = frozenset(
    {
        "triton.Config",
        "tl.constexpr",
        "triton.language.constexpr",
        "tuple",
        "frozenset",
        "dict",
        "list",
        "range",
        "float",
        "int",
    }
)
MOST_CONFIGS = 64
