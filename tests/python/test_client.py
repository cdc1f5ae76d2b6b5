"""A client that this project did not write: grpcio with default limits."""

import http.client
import struct
import time
import uuid

import grpc
import pytest
from fleetgate.v1 import automation_pb2, automation_pb2_grpc, command_pb2, fleet_pb2
from fleetgate.v1 import fleet_pb2_grpc, ledger_pb2, ledger_pb2_grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status

from conftest import SETTINGS, await_attached


@pytest.fixture(scope="module")
def automation(channel):
    return automation_pb2_grpc.AutomationServiceStub(channel)


@pytest.fixture(scope="module")
def ledger(channel):
    return ledger_pb2_grpc.LedgerServiceStub(channel)


@pytest.fixture(scope="module")
def fleet(channel):
    return fleet_pb2_grpc.FleetServiceStub(channel)


@pytest.fixture(scope="module")
def plain(fleet, lab):
    await_attached(fleet, lab.udids["plain"])
    return lab.udids["plain"]


@pytest.fixture(scope="module")
def large(fleet, lab):
    await_attached(fleet, lab.udids["large"])
    return lab.udids["large"]


def details(error):
    """The google.rpc details of a refused call, by type."""
    status = rpc_status.from_call(error)
    found = {}
    for packed in status.details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo, error_details_pb2.BadRequest):
            if packed.Is(kind.DESCRIPTOR):
                message = kind()
                packed.Unpack(message)
                found[kind.__name__] = message
    return found


def tree(automation, device):
    return automation.CaptureSnapshot(
        automation_pb2.CaptureSnapshotRequest(device=device, app_bundle_id=SETTINGS)
    )


def tap_request(device, node, **fields):
    at = automation_pb2.AbsolutePoint(
        x=node.rect.x + node.rect.width / 2, y=node.rect.y + node.rect.height / 2
    )
    return automation_pb2.TapRequest(
        device=device, app_bundle_id=SETTINGS, point=automation_pb2.Point(absolute=at), **fields
    )


def test_the_gateway_says_what_it_is(fleet, plain):
    gateway = fleet.GetGateway(fleet_pb2.GetGatewayRequest())
    assert gateway.version and gateway.protocol_version == 1
    assert gateway.capabilities and not gateway.draining
    assert [host.connected for host in gateway.mux_hosts] == [True]


def test_a_tap_on_a_node_of_the_tree_changes_the_phone_and_is_on_record(automation, ledger, lab, plain):
    row = next(n for n in tree(automation, plain).nodes if n.type == "Cell" and n.label == "Battery")
    reply = automation.Tap(tap_request(plain, row))
    assert reply.receipt.fate == command_pb2.FATE_COMPLETED
    assert reply.receipt.effect == command_pb2.EFFECT_APPLIED
    effects = [e for e in lab.phone("plain")["effects"] if e["command_id"] == reply.receipt.command_id]
    assert len(effects) == 1
    record = ledger.GetCommand(ledger_pb2.GetCommandRequest(command_id=reply.receipt.command_id)).command
    assert record.device == plain and record.kind == command_pb2.COMMAND_KIND_TAP
    assert record.fate == command_pb2.FATE_COMPLETED
    assert record.parameters["x"] == row.rect.x + row.rect.width / 2
    fields = [n for n in tree(automation, plain).nodes if n.type == "TextField"]
    assert fields, "the tapped row has opened a page with a text field"


def test_a_reply_lost_after_a_tap_is_recovered_without_a_second_tap(automation, ledger, lab, plain):
    lab.fault("plain", on="tap", inject="reply_lost_after_execution")
    command_id = str(uuid.uuid4())
    root = tree(automation, plain).nodes[0]
    reply = automation.Tap(tap_request(plain, root, command_id=command_id))
    assert reply.receipt.recovered and reply.receipt.fate == command_pb2.FATE_COMPLETED
    arrivals = [a for a in lab.phone("plain")["arrivals"] if a["command_id"] == command_id]
    assert [a["kind"] for a in arrivals] == ["tap", "commandStatus"], "sent once, then asked about"
    record = ledger.GetCommand(ledger_pb2.GetCommandRequest(command_id=command_id)).command
    assert record.recovered


def test_a_six_megabyte_screenshot_comes_in_chunks_through_default_limits(automation, large):
    parts = list(automation.CaptureScreenshot(automation_pb2.CaptureScreenshotRequest(device=large)))
    header = parts[0].header
    chunks = [part.chunk for part in parts[1:]]
    png = b"".join(chunks)
    assert header.size_bytes == len(png) > 6_000_000
    assert max(len(chunk) for chunk in chunks) <= 256 * 1024
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.endswith(b"IEND\xaeB`\x82")
    assert (header.width, header.height) == struct.unpack(">II", png[16:24])


def test_a_snapshot_of_1500_nodes_comes_through_default_limits(automation, large):
    reply = tree(automation, large)
    assert len(reply.nodes) == 1500
    assert reply.quality.state == automation_pb2.SNAPSHOT_STATE_DEGRADED
    assert reply.quality.reason_code == "node_cap"


def test_a_deadline_is_deadline_exceeded_and_the_tap_goes_on(automation, ledger, lab, plain):
    lab.fault("plain", on="tap", inject={"slow": {"by": "40s"}})  # 2 s on the lab's clock
    command_id = str(uuid.uuid4())
    root = tree(automation, plain).nodes[0]
    with pytest.raises(grpc.RpcError) as refused:
        automation.Tap(tap_request(plain, root, command_id=command_id), timeout=0.5)
    assert refused.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    deadline = time.monotonic() + 20
    while True:
        record = ledger.GetCommand(ledger_pb2.GetCommandRequest(command_id=command_id)).command
        if record.fate != command_pb2.FATE_UNSPECIFIED or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert record.fate == command_pb2.FATE_COMPLETED
    effects = [e for e in lab.phone("plain")["effects"] if e["command_id"] == command_id]
    assert len(effects) == 1


def test_errors_carry_google_rpc_details(automation, plain):
    with pytest.raises(grpc.RpcError) as refused:
        automation.PressKeyboardReturn(
            automation_pb2.PressKeyboardReturnRequest(device=plain, app_bundle_id="com.example.absent")
        )
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    found = details(refused.value)
    info = found["ErrorInfo"]
    assert (info.reason, info.domain) == ("APP_NOT_AVAILABLE", "fleetgate")
    assert info.metadata["device"] == plain
    assert (info.metadata["fate"], info.metadata["effect"]) == ("FAILED", "NONE")
    assert "RetryInfo" not in found


def test_every_violation_of_a_request_is_named(automation, plain):
    with pytest.raises(grpc.RpcError) as refused:
        automation.Tap(automation_pb2.TapRequest(device=plain, number_of_taps=0))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    fields = {v.field for v in details(refused.value)["BadRequest"].field_violations}
    assert fields == {"app_bundle_id", "point", "number_of_taps"}


def test_the_ledger_pages_with_filters(automation, ledger, plain):
    for _ in range(3):
        tree(automation, plain)
    seen, token = [], ""
    while True:
        page = ledger.ListCommands(
            ledger_pb2.ListCommandsRequest(
                device=plain,
                kinds=[command_pb2.COMMAND_KIND_SNAPSHOT],
                page_size=2,
                page_token=token,
            )
        )
        seen += page.commands
        token = page.next_page_token
        if not token:
            break
    assert len(seen) >= 3 and {c.kind for c in seen} == {command_pb2.COMMAND_KIND_SNAPSHOT}
    assert len({c.command_id for c in seen}) == len(seen)


def test_health_answers_for_the_server_and_each_service(channel):
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", "fleetgate.v1.AutomationService", "fleetgate.v1.FleetService", "fleetgate.v1.LedgerService"):
        reply = health.Check(health_pb2.HealthCheckRequest(service=service))
        assert reply.status == health_pb2.HealthCheckResponse.SERVING, service


def test_reflection_describes_the_api(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    assert "fleetgate.v1.AutomationService" in database.get_services()
    service = DescriptorPool(database).FindServiceByName("fleetgate.v1.AutomationService")
    assert "Tap" in {method.name for method in service.methods}


def test_grpc_web_answers_over_http_1(gateway):
    connection = http.client.HTTPConnection(gateway.address, timeout=10)
    connection.request(
        "POST",
        "/fleetgate.v1.FleetService/GetGateway",
        body=b"\x00" + struct.pack(">I", 0),
        headers={
            "Content-Type": "application/grpc-web+proto",
            "X-Grpc-Web": "1",
            "Authorization": f"Bearer {gateway.token()}",
        },
    )
    reply = connection.getresponse()
    body = reply.read()
    assert reply.status == 200 and reply.getheader("content-type").startswith("application/grpc-web")
    length = struct.unpack(">I", body[1:5])[0]
    message = fleet_pb2.GetGatewayResponse.FromString(body[5 : 5 + length])
    assert message.version
    assert b"grpc-status:0" in body[5 + length :]
