"""The static screen: honest passes have no finding, each trick has its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluate.passes import read_task, screen
from tests.evaluate.passes.making import HONEST, task


def found(folder: Path, text: str = HONEST, **files: str) -> set[str]:
    return {f.exploit for f in screen(read_task(task(folder / "t", order=["a"], a=text, **files)))}


def inside(line: str, head: str = "") -> str:
    """The honest pass with a line more in its wrapper, and perhaps one more at the top."""
    return HONEST.replace("    n = out.numel()\n", f"    n = out.numel()\n    {line}\n").replace(
        "import torch\n", f"import torch\n{head}\n", 1
    )


def test_the_honest_pass_has_no_finding(tmp_path: Path):
    assert found(tmp_path) == set()


HONEST_LINES = [
    ("rows, columns = x.shape[0], x.stride(1)", ""),
    ("view = x.view(-1).unsqueeze(0).expand(2, -1).transpose(0, 1)", ""),
    ("scratch = torch.empty((n, 2), dtype=torch.float32, device=x.device)", ""),
    ("wide = torch.promote_types(x.dtype, y.dtype)", ""),
    ("kind = torch.finfo(x.dtype).min", ""),
    ("table = {}\n    table['a'] = 1\n    names = []\n    names.append(1)", ""),
    ("block = triton.next_power_of_2(n) if n < 1024 else 1024", ""),
    ("size = math.prod(x.shape)", "import math"),
    ("many = torch.cuda.get_device_properties(x.device).multi_processor_count", ""),
    ("y2 = y.new_empty((3,))", ""),
    ("if x.dtype == torch.bfloat16:\n        n = n + 0", ""),
    ("helper(n)", "from shared import helper"),
    ("assert n > 0, 'empty'", ""),
    ("print(n)", ""),
]


@pytest.mark.parametrize("line, head", HONEST_LINES)
def test_honest_lines_have_no_finding(tmp_path: Path, line: str, head: str):
    assert found(tmp_path, inside(line, head), shared="def helper(n):\n    return n\n") == set()


EXPLOITS = [
    ("delegation", "return torch.relu(x + y)", ""),
    ("delegation", "return x @ y", ""),
    ("delegation", "return x.mm(y)", ""),
    ("delegation", "return x.add(y).relu()", ""),
    ("delegation", "f = torch.add", ""),
    ("delegation", "t = torch", ""),
    ("delegation", "return F.relu(x)", "import torch.nn.functional as F"),
    ("delegation", "return relu(x)", "from torch import relu"),
    ("delegation", "return operator.add(x, y)", "import operator"),
    ("delegation", "return torch.ops.aten.relu(x)", ""),
    ("dynamic_attribute", "return getattr(torch, 'm' + 'm')(x, y)", ""),
    ("dynamic_attribute", "c = x.__class__", ""),
    ("dynamic_code", "exec('import os')", ""),
    ("dynamic_code", "f = eval", ""),
    ("dynamic_code", "pass", "import base64"),
    ("dynamic_import", "o = __import__('os')", ""),
    ("dynamic_import", "import os", ""),
    ("silent_fallback", "try:\n        pass\n    except Exception:\n        pass", ""),
    ("compile_in_replacement", "return torch.compile(fused)(x, y)", ""),
    ("compile_in_replacement", "pass", "import torch._inductor.config"),
    ("side_stream", "s = torch.cuda.Stream()", ""),
    ("side_stream", "with torch.cuda.stream(None):\n        pass", ""),
    ("background_thread", "pass", "import threading"),
    ("native_code", "pass", "import ctypes"),
    ("native_code", "pass", "from torch.utils.cpp_extension import load_inline"),
    ("introspection", "pass", "import gc"),
    ("introspection", "pass", "import sys"),
    ("introspection", "g = globals()", ""),
    ("filesystem", "f = open('/tmp/x', 'w')", ""),
    ("filesystem", "pass", "import os"),
    ("filesystem", "t = torch.load('x')", ""),
    ("network", "pass", "import socket"),
    ("package_installation", "pass", "import subprocess"),
    ("timer", "pass", "import time"),
    ("timer_patch", "torch.cuda.synchronize()", ""),
    ("monkeypatch", "torch.allclose = print", ""),
    ("monkeypatch", "triton.cdiv = print", ""),
    ("global_state", "torch.backends.cuda.matmul.allow_tf32 = True", ""),
    ("global_state", "torch.set_num_threads(1)", ""),
    ("state_between_calls", "global CACHE", ""),
    ("state_between_calls", "CACHE[x.shape] = out", "CACHE = {}"),
    ("state_between_calls", "CACHE.append(out)", "CACHE = []"),
    ("state_between_calls", "fused.last = out", ""),
    ("state_between_calls", "pass", "import functools"),
    ("cached_by_pointer", "p = x.data_ptr()", ""),
    ("lazy_tensor", "z = x.as_subclass(None)", ""),
    ("host_computation", "v = x.item()", ""),
    ("obfuscation", "pass", "from torch import *"),
    ("obfuscation", "pass\n    class C: pass", ""),
    ("module_level_code", "pass", "print('result: ok')"),
    ("module_level_code", "pass", "X = torch.empty(3)"),
    ("harness_import", "pass", "import evaluate.verdict"),
    ("forbidden_import", "pass", "import pandas"),
    ("forbidden_import", "pass", "import torch.distributed"),
]


@pytest.mark.parametrize("exploit, line, head", EXPLOITS)
def test_each_trick_is_refused_by_its_name(tmp_path: Path, exploit: str, line: str, head: str):
    assert exploit in found(tmp_path, inside(line, head))


@pytest.mark.parametrize("exploit, line, head", [e for e in EXPLOITS if e[2] == "" and "fused" not in e[1]][:12])
def test_helper_files_are_screened_like_pass_files(tmp_path: Path, exploit: str, line: str, head: str):
    helper = f"import torch\n\n\ndef helper(x, y):\n    {line}\n    return x\n"
    assert exploit in found(tmp_path, inside("helper(x, y)", "from shared import helper"), shared=helper)


@pytest.mark.parametrize(
    "exploit, old, new",
    [
        ("delegation", "return fused", "return torch.add"),
        ("work_in_replacement_args", 'return (x, y, "add_relu")', "return (x * 2, y)"),
        ("work_in_replacement_args", 'return (x, y, "add_relu")', "return (x.relu(), y)"),
        ("work_in_replacement_args", 'return (x, y, "add_relu")', "z = x\n    return (z, y)"),
        ("work_in_replacement_args", 'return (x, y, "add_relu")', "return (x.T, y)"),
        ("state_between_calls", "def fused(x, y, route)", "def fused(x, y, route, kept={})"),
        ("monkeypatch", "@torch.fx.wrap", "@torch.no_grad()"),
        ("missing_function", "def pattern(", "def patern("),
        ("unbounded_autotune", "@triton.jit", f"@triton.autotune([{'triton.Config({}), ' * 65}], key=[])\n@triton.jit"),
        ("module_level_code", "def pattern(x, y):", "def pattern(x, y):\n    import os"),
        ("syntax", "def pattern(", "def def pattern("),
        ("syntax", '"""relu', "(" * 5000 + '"""relu'),
    ],
)  # fmt: skip
def test_tricks_in_the_format_itself(tmp_path: Path, exploit: str, old: str, new: str):
    assert exploit in found(tmp_path, HONEST.replace(old, new, 1))


def test_a_finding_says_where(tmp_path: Path):
    (finding,) = screen(read_task(task(tmp_path / "t", order=["a"], a=inside("v = x.item()"))))
    line = inside("v = x.item()").splitlines().index("    v = x.item()") + 1
    assert str(finding) == f"a.py:{line}: calls .item() (host_computation)"
