"""The deployment in prefect.yaml: loads, takes the command's options, and ships its schedule inactive."""

from __future__ import annotations

import inspect
from typing import Any

import yaml
from prefect import Flow
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import load_flow_from_entrypoint

from flows.commands.refresh import refresh
from tests.flows.conftest import ROOT

DECLARED: dict[str, Any] = yaml.safe_load((ROOT / "prefect.yaml").read_text())
(DEPLOYMENT,) = DECLARED["deployments"]


def entry() -> Flow[Any, Any]:
    file, name = DEPLOYMENT["entrypoint"].split(":")
    return load_flow_from_entrypoint(f"{ROOT / file}:{name}")


def test_the_entry_point_loads_and_takes_the_declared_parameters():
    flow = entry()
    assert set(DEPLOYMENT["parameters"]) <= set(flow.parameters.properties)
    assert flow.validate_parameters({**DEPLOYMENT["parameters"], "sources": ["timm"], "limit": 3})


def test_the_flow_takes_the_options_of_the_command():
    options = set(inspect.signature(refresh).parameters) - {"as_json"}
    plural = {"source": "sources", "variant": "variants"}
    assert {plural.get(name, name) for name in options} == set(entry().parameters.properties)


def test_the_schedule_is_a_cron_line_and_ships_inactive():
    (schedule,) = DEPLOYMENT["schedules"]
    assert schedule["active"] is False
    CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])
