"""The loopback Hub is one that the client library itself talks to."""

from itertools import islice

from huggingface_hub import HfApi


def test_the_client_library_lists_every_page(hub):
    api = HfApi(endpoint=hub.url, token=False)
    found = list(api.list_models(sort="downloads", expand=["sha", "config", "tags", "downloads", "library_name"]))
    assert len(found) == 2500 and hub.asked["list"] == 3
    assert found[0].config["model_type"] == "llama" and len(found[0].sha) == 40
    assert [m.downloads for m in found] == sorted((m.downloads for m in found), reverse=True)


def test_the_client_library_filters_by_task_and_author(hub):
    api = HfApi(endpoint=hub.url, token=False)
    tasks = {m.pipeline_tag for m in islice(api.list_models(pipeline_tag="fill-mask", full=True), 50)}
    assert tasks == {"fill-mask"}
    assert {m.id.split("/")[0] for m in api.list_models(author="maker-3")} == {"maker-3"}


def test_the_client_library_waits_as_long_as_the_limit_says(hub):
    hub.fail("list", "429-ratelimit", "503")
    assert len(list(HfApi(endpoint=hub.url, token=False).list_models(limit=10))) == 10
    assert hub.asked["list"] == 3
