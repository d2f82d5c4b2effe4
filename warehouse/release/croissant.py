"""The Croissant metadata of a release: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html.

In go the contents of a release, out comes JSON-LD: each shard a FileObject with its SHA-256, each table a FileSet of
its shards and a RecordSet of its columns, with the comments of `warehouse.schema` as descriptions.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from warehouse.release.contents import Contents
from warehouse.schema import SCHEMA_VERSION, TABLES

NAME = "passnet"
DESCRIPTION = (
    "Computation graphs of PyTorch models, captured without weights, deduplicated, and stored as tables: models, "
    "captures, graphs, their nodes, and every place where a graph occurs."
)
FORMAT = "application/x-parquet"

#: The context that the specification prescribes, word for word.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def metadata(contents: Contents) -> dict[str, Any]:
    """The JSON-LD document. The version is `<schema>.<snapshot number>.0`, as the specification wants three numbers."""
    snapshot, day = contents.snapshot, contents.captured_on
    files = [
        {
            "@type": "cr:FileObject",
            "@id": shard.path,
            "name": shard.path,
            "contentUrl": shard.path,
            "contentSize": f"{shard.bytes} B",
            "encodingFormat": FORMAT,
            "sha256": shard.sha256,
        }
        for shards in contents.shards.values()
        for shard in shards
    ]
    sets = [
        {
            "@type": "cr:FileSet",
            "@id": f"{table}-shards",
            "name": f"{table}-shards",
            "description": f"Files of the table {table}.",
            "encodingFormat": FORMAT,
            "includes": f"{table}/*.parquet",
        }
        for table in contents.shards
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": NAME,
        "description": DESCRIPTION,
        "version": f"{SCHEMA_VERSION}.{snapshot.sequence}.0",
        "citeAs": f"Computation graphs of PyTorch models by PassNet, snapshot {snapshot.id}",
        "license": contents.licence_identifiers,
        **({"datePublished": day.isoformat()} if day else {}),
        "distribution": [*files, *sets],
        "recordSet": [_record_set(table) for table in contents.shards],
    }


def _record_set(name: str) -> dict[str, Any]:
    table = TABLES[name]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": table.comment,
        "key": [{"@id": f"{name}/{column}"} for column in table.sort],
        "field": [_field(name, *column) for column in table.columns],
    }


def _field(table: str, column: str, type: pa.DataType, comment: str) -> dict[str, Any]:
    listed = pa.types.is_list(type)
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "description": comment,
        "dataType": _word(type.value_type if listed else type),
        **({"isArray": True, "arrayShape": "-1"} if listed else {}),
        "source": {"fileSet": {"@id": f"{table}-shards"}, "extract": {"column": column}},
    }


def _word(type: pa.DataType) -> str:
    if pa.types.is_integer(type):
        return "sc:Integer"
    if pa.types.is_floating(type):
        return "sc:Float"
    if pa.types.is_boolean(type):
        return "sc:Boolean"
    return "sc:DateTime" if pa.types.is_timestamp(type) else "sc:Text"
