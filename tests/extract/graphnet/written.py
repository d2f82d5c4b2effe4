"""Small samples in GraphNet's folder layout, written by hand for the tests."""

from __future__ import annotations

import json
from pathlib import Path

MLP = """\
import torch

from torch import device


class GraphModule(torch.nn.Module):
    def forward(
        self,
        L_self_modules_fc1_parameters_weight_: torch.nn.parameter.Parameter,
        L_self_modules_fc1_parameters_bias_: torch.nn.parameter.Parameter,
        L_x_: torch.Tensor,
        L_self_modules_norm_eps: torch.Tensor,
        s0: torch.SymInt,
    ):
        l_self_modules_fc1_parameters_weight_ = L_self_modules_fc1_parameters_weight_
        l_x_ = L_x_
        linear = torch._C._nn.linear(
            l_x_, l_self_modules_fc1_parameters_weight_, L_self_modules_fc1_parameters_bias_
        )
        l_x_ = l_self_modules_fc1_parameters_weight_ = None
        item = L_self_modules_norm_eps.item()
        normed = torch.nn.functional.layer_norm(linear, (8,), None, None, item)
        item = None
        scores = normed.transpose(0, 1)[(slice(None, None, None), 0)]
        scores += 1
        scores_1 = scores
        scores = None
        steps = torch.arange(8, device=device(type="cuda", index=0))
        late = steps > -3
        kept = scores_1.masked_fill(late, 0.5)
        steps = late = None
        _log_api_usage_once = torch._C._log_api_usage_once("python.nn_module")
        return (kept, normed)
"""

MLP_META = """\
class Program_weight_tensor_meta_L_self_modules_fc1_parameters_weight_:
    name = "L_self_modules_fc1_parameters_weight_"
    shape = [8, 6]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.010
    std = 0.250
    data = None


class Program_weight_tensor_meta_L_self_modules_fc1_parameters_bias_:
    name = "L_self_modules_fc1_parameters_bias_"
    shape = [8]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.000
    std = 0.000
    data = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8]


class Program_weight_tensor_meta_L_x_:
    name = "L_x_"
    shape = [8, 6]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.500
    std = 0.290
    min_val = 0.0
    max_val = 1.0
    data = None


class Program_weight_tensor_meta_L_self_modules_norm_eps:
    name = "L_self_modules_norm_eps"
    shape = []
    dtype = "torch.float64"
    device = "cpu"
    mean = 0.000
    std = 0.000
    data = [0.000010]


class Program_weight_tensor_meta_s0:
    name = "s0"
    shape = []
    dtype = "torch.int64"
    device = "cpu"
    mean = None
    std = None
    data = [4]
"""


def forward(body: str, arguments: str = "x: torch.Tensor", head: str = "import torch") -> str:
    """A model.py around the statements of `body`."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return f"{head}\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, {arguments}):\n{lines}\n"


def meta(name: str, *shape: int, dtype: str = "float32", **more: object) -> str:
    """One class of a weight_meta.py."""
    given = {"name": name, "shape": list(shape), "dtype": f"torch.{dtype}", "device": "cuda:0", "mean": 0.0, "std": 1.0}
    lines = "\n".join(f"    {key} = {value!r}" for key, value in {**given, **more}.items())
    return f"class Program_weight_tensor_meta_{name}:\n{lines}\n\n"


def write(folder: Path, model: str = MLP, metas: str = MLP_META, **facts: object) -> Path:
    """A sample folder with all files of the layout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(model, encoding="utf-8")
    (folder / "weight_meta.py").write_text(metas, encoding="utf-8")
    (folder / "input_meta.py").write_text("")
    (folder / "input_tensor_constraints.py").write_text("")
    (folder / "graph_hash.txt").write_text("ab" * 32)
    about = {"framework": "torch", "num_devices_required": 1, "num_nodes_required": 1, **facts}
    (folder / "graph_net.json").write_text(json.dumps(about))
    return folder
