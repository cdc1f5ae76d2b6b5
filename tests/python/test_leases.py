"""Phones for one driver at a time, by a client that this project did not write."""

import grpc
import pytest
from fleetgate.v1 import automation_pb2, automation_pb2_grpc, command_pb2, fleet_pb2_grpc
from fleetgate.v1 import lease_pb2, lease_pb2_grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from conftest import SETTINGS, await_attached


@pytest.fixture
def phone(channel, lab):
    await_attached(fleet_pb2_grpc.FleetServiceStub(channel), lab.udids["audited"])
    return lab.udids["audited"]


def reason(error):
    """The reason of a refused call."""
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(error).details[0].Unpack(info)
    return info.reason


def tap(automation, phone, **fields):
    point = automation_pb2.Point(normalized=automation_pb2.NormalizedPoint(x=0.5, y=0.25))
    request = automation_pb2.TapRequest(device=phone, app_bundle_id=SETTINGS, point=point, **fields)
    return automation.Tap(request, timeout=30)


def test_a_lease_is_kept_by_a_stream_and_given_back(channel, phone):
    leases = lease_pb2_grpc.LeaseServiceStub(channel)
    automation = automation_pb2_grpc.AutomationServiceStub(channel)
    wanted = lease_pb2.CreateLeaseRequest(
        request_id="grpcio", device_list=lease_pb2.DeviceList(devices=[phone])
    )
    lease = leases.CreateLease(wanted).lease
    assert lease.state == lease_pb2.LEASE_STATE_ACTIVE and list(lease.devices) == [phone]
    assert leases.CreateLease(wanted).lease.id == lease.id, "the same wish is the same lease"

    with pytest.raises(grpc.RpcError) as refused:
        tap(automation, phone)
    assert reason(refused.value).startswith("LEASE_")
    held = command_pb2.LeaseRef(id=lease.id, epoch=lease.epoch)
    assert tap(automation, phone, lease=held).receipt.fate == command_pb2.FATE_COMPLETED

    beats = [lease_pb2.KeepAliveRequest(lease_id=lease.id, epoch=lease.epoch)] * 3
    kept = [reply.lease.state for reply in leases.KeepAlive(iter(beats))]
    assert kept == [lease_pb2.LEASE_STATE_ACTIVE] * 3

    watch = leases.WatchLease(lease_pb2.WatchLeaseRequest(lease_id=lease.id), timeout=30)
    assert next(watch).change == lease_pb2.LEASE_CHANGE_SNAPSHOT
    leases.ReleaseLease(lease_pb2.ReleaseLeaseRequest(lease_id=lease.id))
    told = list(watch)
    assert told[-1].change == lease_pb2.LEASE_CHANGE_ENDED
    assert told[-1].lease.end_reason == "RELEASED"
    assert tap(automation, phone).receipt.fate == command_pb2.FATE_COMPLETED
