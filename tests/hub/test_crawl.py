"""A crawl asks little, keeps all, goes on after any end, and takes nothing a stranger says on trust."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from extract.failures import CLASSES
from extract.sources.hub import client as client_module
from extract.sources.hub import configurations, entries
from extract.sources.hub.client import Client, HubError, Refused
from extract.sources.hub.crawl import crawl
from extract.sources.hub.query import Query, QueryError
from extract.sources.hub.source import HubSource, refs
from tests.hub.population import Population

EVERYTHING = Query(limit=10_000)


def ask(hub, query=EVERYTHING):
    return crawl(Client(hub.url, token=False), query)


def test_one_configuration_is_asked_for_in_each_group_and_fine_tunes_collapse(hub):
    found = ask(hub)
    groups = {one.model.grouping for one in found if one.model.grouping}
    assert len(found) == 2500 and hub.asked["list"] == 3
    assert hub.asked["config"] <= len(groups) and len(set(hub.paths)) == len(hub.paths)
    made = list(refs(found))
    assert len(made) > 1500 and len({ref.config_hash for ref in made}) == 30
    assert all("/resolve/" in p and p.endswith("config.json") for p in hub.paths if not p.startswith("/api/models?"))
    assert all("passnet" in agent for agent in hub.agents) and hub.most_at_once <= 4


def test_every_listed_model_is_kept_and_what_has_no_configuration_has_a_known_class(hub):
    found = ask(hub)
    kinds = Counter(one.kind for one in found)
    assert set(kinds) - {""} <= set(CLASSES)
    assert {"hub_no_access", "hub_missing", "hub_answer_invalid", "config_refused", "library_unsupported"} <= set(kinds)
    assert all(one.model.name.isprintable() and one.model.name.isascii() for one in found)


def test_a_second_crawl_asks_only_for_what_changed(hub):
    first = ask(hub)
    hub.asked.clear()
    assert ask(hub) == first and hub.asked == {"list": 3}
    hub.population = replace(
        hub.population, changed=frozenset({0, 2001, 2002})
    )  # a base, and two that were never asked
    again = ask(hub)
    assert hub.asked == {"list": 6, "config": 1}
    assert [a.model.name for a in again if a.model.sha not in {f.model.sha for f in first}][0] == first[0].model.name


@pytest.mark.parametrize("fault", ["429", "429-ratelimit", "503", "truncated", "html", "slow"])
def test_a_fault_of_the_listing_passes(hub, fault, monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    hub.fail("list", fault)
    assert len(ask(hub, Query(limit=5))) == 5
    assert hub.asked["list"] == (1 if fault == "slow" else 2)


def test_a_crawl_that_the_hub_ends_goes_on_at_its_page(hub, monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    whole = Client(hub.url, token=False)
    page, asked = whole.page, []

    def failing(url):
        asked.append(url)
        if len(asked) == 2:
            raise HubError("gone")
        return page(url)

    monkeypatch.setattr(whole, "page", failing)
    with pytest.raises(HubError):
        crawl(whole, EVERYTHING)
    assert len(ask(hub)) == 2500 and hub.asked["list"] == 3


def test_a_crawl_that_is_killed_goes_on_and_ends_alike(hub, tmp_path, monkeypatch):
    code = (
        "import os, signal, sys\n"
        "from extract.sources.hub.client import Client\n"
        "from extract.sources.hub.crawl import crawl\n"
        "from extract.sources.hub.query import Query\n"
        "die = lambda text: os.kill(os.getpid(), signal.SIGKILL) if text.startswith('2000') else None\n"
        "crawl(Client(sys.argv[1], token=False), Query(limit=10_000), die)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, hub.url], check=False)
    assert done.returncode == -9 and hub.asked["list"] == 2
    resumed = ask(hub)
    assert hub.asked["list"] == 3
    monkeypatch.setenv("PASSNET_HUB_CACHE", str(tmp_path / "another"))
    assert ask(hub) == resumed


def test_a_hub_that_answers_html_is_one_clear_error(hub, monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.001)
    hub.fail("list", *["html"] * 6)
    with pytest.raises(HubError, match="HF_ENDPOINT"):
        ask(hub)


def test_filters_reach_the_hub_and_senseless_ones_are_refused(hub):
    found = ask(hub, Query(task="fill-mask", author="maker-1"))
    assert [one.model.name.split("/")[0] for one in found] == ["maker-1"] * len(found) and found
    for wrong in ({"author": "../x"}, {"since": "yesterday"}, {"limit": 0}, {"task": "a b\n"}):
        with pytest.raises(QueryError):
            Query(**wrong)


@pytest.mark.parametrize(
    "row",
    [None, 3, [], {}, {"id": 7}, {"id": "a/b"}, {"id": "a/../b", "sha": "0" * 40}, {"id": "é/b", "sha": "0" * 40},
            {"id": "a/b", "sha": "0" * 40, "tags": 5, "config": [], "safetensors": "x", "downloads": -1}]
)  # fmt: skip
def test_any_row_of_a_listing_is_read(row):
    model = entries.read(row)
    assert model.kind in CLASSES and model.name.isascii() and not model.grouping


@pytest.mark.parametrize(
    "hostile",
    [{"num_hidden_layers": 10**9}, {"hidden_size": -7}, {"hidden_size": "x"}, {"hidden_size": [1]}, {"a": "x" * 2000},
     {"a": [[[[[[[[[[1]]]]]]]]]]}, {"a": list(range(30_000))}, {"x" * 2000: 1}, {"model_type": "gpt2"},
     {"hidden_size": 1e999}]
)  # fmt: skip
def test_hostile_values_are_refused_before_anything_is_built(hostile):
    with pytest.raises(Refused) as refusal:
        configurations.normalise("transformers", "bert", "BertModel", {"model_type": "bert", **hostile})
    assert refusal.value.kind in CLASSES


def test_leftovers_defaults_and_renamed_keys_make_no_difference():
    def of(**more):
        return configurations.normalise("transformers", "gpt2", "GPT2LMHeadModel", {"model_type": "gpt2", **more})

    plain = of(n_embd=64)
    assert plain == of(hidden_size=64, n_layer=12, bos_token_id=5, _name_or_path="x", my_run=3, embd_pdrop=0.5)
    assert plain != of(n_embd=128)


def test_timm_names_and_configurations_build_only_known_architectures():
    assert json.loads(configurations.timm_by_name("resnet18.a1_in1k"))["architecture"] == "resnet18"
    for wrong in (
        {"architecture": "hf-hub:a/b"},
        {"architecture": "resnet18", "model_args": {"checkpoint_path": "/x"}},
    ):
        with pytest.raises(Refused):
            configurations.normalise("timm", "", "", wrong)


def test_a_reference_builds_the_module_that_its_configuration_describes(hub):
    import torch

    ref = next(r for r in refs(ask(hub, Query(limit=10))) if r.family == "bert")
    with torch.device("meta"):
        model = HubSource().build(ref)
    assert model.config.hidden_size == Population(1).dimensions(1)["hidden_size"]
