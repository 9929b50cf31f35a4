# SPDX-License-Identifier: Apache-2.0
"""What gflow-device-plugin and gflow-dra-driver take the kubelet's words for is what they are: their .proto files against Kubernetes' own."""

import subprocess

import pytest
from cluster import programs
from package import ROOT
from pypi import needed, program

SOURCES = ROOT / "src"


def described(file, tmp_path):
    """Each method and field of it, by name: what it takes and gives, its number and type."""
    from google.protobuf import descriptor_pb2

    subprocess.run([program("python"), "-m", "grpc_tools.protoc", f"-I{file.parent}", f"--descriptor_set_out={tmp_path / 'set'}", file.name], check=True)
    [made] = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "set").read_bytes()).file
    found = {}
    for service in made.service:
        for one in service.method:
            found[f"{made.package}.{service.name}/{one.name}"] = (one.input_type, one.output_type, one.client_streaming, one.server_streaming)
    for message in made.message_type:
        found[f"{made.package}.{message.name}"] = ()
        for one in message.field:
            found[f"{made.package}.{message.name}.{one.name}"] = (one.number, one.label, one.type, one.type_name)
    return found


@pytest.mark.parametrize(("own", "theirs", "is_all"), [
    ("deviceplugin/api/device_plugin", "deviceplugin", True), ("deviceplugin/api/pod_resources", "podresources", False),
    ("dra/api/dra", "dra", True), ("dra/api/dra_health", "drahealth", True), ("dra/api/plugin_registration", "pluginregistration", True)])
def test_methods_and_fields_are_those_of_kubernetes(own, theirs, is_all, tmp_path, kube_package):
    original = needed(programs() / f"protocols/{theirs}.proto", "the kubelet's protocols")
    ours, original = (described(file, tmp_path) for file in (SOURCES / f"{own}.proto", original))
    assert ours.items() <= original.items(), ours.items() - original.items()
    if is_all:
        assert ours == original
