"""The manifests of examples/kubernetes against the schemas of several versions of Kubernetes, Kubeflow Trainer with JobSet, and MPI
Operator. What no schema has is refused; rules that only a cluster evaluates (CEL, webhooks) are not. tests/cluster/kubernetes_test.py
runs the pods' commands."""

import copy
import importlib.resources
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples/kubernetes"
# The README says: 1.29 or later.
VERSIONS = ["1.29", "1.31", "1.33", "1.35", "1.37"]
TRAINERS = ["trainer-2.0.1", "trainer-2.1.0", "trainer-2.2.1", "trainer-2.3.0"]
# Objects in which a user chooses the names.
FREE = {"labels", "annotations", "requests", "limits", "selector"}
CUSTOM = {"ClusterTrainingRuntime": TRAINERS, "TrainJob": TRAINERS, "JobSet": TRAINERS, "MPIJob": ["mpijob-v2beta1"]}


def all_documents():
    """(file and kind, document) of each."""
    for path in sorted(EXAMPLE.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] != "Kustomization":
                yield f"{path.relative_to(EXAMPLE)}-{document['kind']}", document


DOCUMENTS = dict(all_documents())


@cache
def folder_of(version):
    return importlib.resources.files("kubernetes_validate") / f"kubernetes-json-schema/v{version}.0-local-strict"


@cache
def of_kubernetes(version):
    return json.loads((folder_of(version) / "_definitions.json").read_text())["$defs"]


@cache
def of_custom(name):
    text = (HERE / f"kubernetes_schemas/{name}.json").read_text()
    return json.loads(text.replace('"kubernetes#', '"#/$defs/').replace('"#/definitions/', '"#/$defs/'))


def schema_of(kind, version, custom):
    if custom:
        schemas = of_custom(custom)
        return {**schemas["kinds"][kind], "$defs": {**of_kubernetes(version), **schemas["definitions"]}}
    group = {"Job": "batch-v1"}.get(kind, "v1")
    schema = json.loads(
        (folder_of(version) / f"{kind.lower()}-{group}.json").read_text().replace('"/api/_definitions.json#', '"#')
    )
    schema.pop("$id", None)  # else what it refers to would be looked for there
    return {**schema, "$defs": of_kubernetes(version)}


def errors(document, version, custom=None):
    checker = jsonschema.Draft202012Validator(schema_of(document["kind"], version, custom))
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in checker.iter_errors(document)]


def cases():
    for name, document in DOCUMENTS.items():
        for version in VERSIONS:
            for custom in CUSTOM.get(document["kind"], [None]):
                yield pytest.param(document, version, custom, id=f"{name}-{version}-{custom or 'kubernetes'}")


@pytest.mark.parametrize("document, version, custom", cases())
def test_manifest_is_valid(document, version, custom):
    assert errors(document, version, custom) == []


def objects_in(node, path=()):
    """The paths of all objects but those that map names to values, where any name is allowed."""
    if isinstance(node, dict):
        if not path or path[-1] not in FREE:
            yield path
        for key, value in node.items():
            yield from objects_in(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from objects_in(value, (*path, index))


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_unknown_field_anywhere_is_refused(document):
    """So the schemas are strict, and know every object in these manifests."""
    custom = CUSTOM.get(document["kind"], [None])[-1]
    for path in objects_in(document):
        changed = copy.deepcopy(document)
        node = changed
        for key in path:
            node = node[key]
        node["misspelled"] = "x"
        assert errors(changed, VERSIONS[-1], custom) != [], path


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl kustomize")
@pytest.mark.parametrize("folder", ["base", "gpu"])
def test_kustomizations_are_valid(folder):
    built = subprocess.run(
        ["kubectl", "kustomize", EXAMPLE / folder], check=True, capture_output=True, text=True, timeout=60
    )
    documents = list(yaml.safe_load_all(built.stdout))
    assert sorted(document["kind"] for document in documents) == ["Job", "Job", "PersistentVolumeClaim", "Service"]
    for document in documents:
        assert errors(document, VERSIONS[-1]) == []
    images = {item["spec"]["template"]["spec"]["containers"][0]["image"] for item in documents if item["kind"] == "Job"}
    assert images == {"registry.example.com/training:1" if folder == "base" else "registry.example.com/mine:2"}


def test_train_job_has_twelve_lines_at_most():
    assert len((EXAMPLE / "trainer/trainjob.yaml").read_text().splitlines()) <= 12
