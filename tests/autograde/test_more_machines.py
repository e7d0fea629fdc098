"""The page on more machines: its manifests are what Kubernetes documents, its commands exist."""

import re
import subprocess
import sys

import pytest
import yaml

from autograde.chapters import ROOT

PAGE = (ROOT / "pages" / "more-machines.md").read_text(encoding="utf-8")
# apiVersion of each kind, from the API reference of Kubernetes 1.3x.
KINDS = {
    "RuntimeClass": "node.k8s.io/v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def manifests():
    (text,) = blocks("yaml")
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}


def test_each_manifest_has_the_version_of_its_kind(manifests):
    assert {kind: one["apiVersion"] for (kind, _), one in manifests.items()} == KINDS
    name = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # a DNS label, as Kubernetes asks
    assert all(name.fullmatch(name_) for _, name_ in manifests)


def test_what_names_another_object_names_one_that_is_there(manifests):
    deployments = {name: one for (kind, name), one in manifests.items() if kind == "Deployment"}
    for one in deployments.values():
        template = one["spec"]["template"]
        wanted = one["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= template["metadata"]["labels"].items()
    workers = deployments["grading-workers"]["spec"]["template"]["spec"]
    assert ("RuntimeClass", workers["runtimeClassName"]) in manifests
    service = manifests["Service", "grading-scheduler"]["spec"]
    labels = deployments["grading-scheduler"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    port = service["ports"][0]["port"]
    assert f"tcp://grading-scheduler:{port}" in workers["containers"][0]["args"]
    policy = manifests["NetworkPolicy", "grading-among-itself"]["spec"]["podSelector"]
    for one in deployments.values():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert policy["matchLabels"].items() <= labels.items()


def test_a_command_is_a_list_of_texts(manifests):
    """YAML would make a number of a bare 8786, and Kubernetes refuses it."""
    for (kind, _), one in manifests.items():
        if kind == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            words = [*container["command"], *container.get("args", [])]
            assert all(isinstance(word, str) for word in words)


def test_dasks_commands_have_the_options_that_the_page_names(dask_help):
    said = re.findall(r"python -m dask (scheduler|worker) ([^`\n]*(?:\\\n[^`\n]*)?)", PAGE)
    assert {program for program, _ in said} == {"scheduler", "worker"}
    for program, words in said:
        for option in set(re.findall(r"--[a-z-]+", words)) - {"--help"}:
            assert f"{option} " in dask_help[program], (program, option)
    for option in ("--tls-ca-file", "--tls-cert", "--tls-key", "--protocol"):
        assert option in dask_help["scheduler"]


@pytest.fixture(scope="module")
def dask_help():
    def ask(program):
        command = [sys.executable, "-m", "dask", program, "--help"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return re.sub(r"[/\s]+", " ", told)

    return {program: ask(program) for program in ("scheduler", "worker")}


def test_scripts_are_shell(tmp_path):
    scripts = blocks("sh")
    assert len(scripts) == 2
    for text in scripts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
