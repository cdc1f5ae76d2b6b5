"""A watcher that this project did not write: grpcio follows the fleet while
operators and cables change it, and asks for what it has missed."""

import grpc
import pytest
from fleetgate.v1 import automation_pb2, automation_pb2_grpc, command_pb2, device_pb2
from fleetgate.v1 import fleet_pb2, fleet_pb2_grpc

from conftest import SCENARIO, Gateway, Lab, await_attached

READY = device_pb2.DEVICE_STATE_READY
DETACHED = device_pb2.DEVICE_STATE_DETACHED
PHONES = SCENARIO.count("[[phones]]")


class Watcher:
    """One WatchFleet stream, and what it has told."""

    def __init__(self, fleet, cursor="", types=()):
        request = fleet_pb2.WatchFleetRequest(resume_cursor=cursor, types=types)
        # Nothing is waited for longer than this.
        self.stream = fleet.WatchFleet(request, timeout=30)
        self.devices, self.events, self.cursors = {}, [], []
        self.gaps = self.heartbeats = self.synced = 0
        self.cursor = cursor

    def step(self):
        message = next(self.stream)
        kind = message.WhichOneof("item")
        if kind == "snapshot":
            assert message.cursor == "", "nowhere to resume within a snapshot"
            self.devices |= {device.udid: device for device in message.snapshot.devices}
        elif kind == "gap":
            self.devices, self.gaps = {}, self.gaps + 1
        elif kind == "synced":
            self.synced += 1
        elif kind == "heartbeat":
            self.heartbeats += 1
        else:
            assert kind == "event"
            self.take(message.event)
            self.cursors.append(message.cursor)
        self.cursor = message.cursor or self.cursor
        return kind

    def take(self, event):
        self.events.append(event)
        if event.WhichOneof("event") == "device_changed":
            device = event.device_changed.device
            self.devices[device.udid] = device

    def until(self, holds):
        while not holds():
            self.step()

    def until_synced(self):
        self.until(lambda: self.synced)
        return self

    def transitions(self, udid):
        """What it was told that a phone went through."""
        changed = [e.device_changed for e in self.events if e.HasField("device_changed")]
        return [words(c.transition) for c in changed if c.HasField("transition") and c.device.udid == udid]

    def end(self):
        self.stream.cancel()


def words(transition):
    def state(number):
        return device_pb2.DeviceState.Name(number).removeprefix("DEVICE_STATE_")

    return f"{state(transition.to)} by {transition.reason}"


def history(fleet, udid):
    """Everything on record of a phone, the oldest first, page by page."""
    rows, token = [], ""
    while True:
        page = fleet.ListDeviceTransitions(
            fleet_pb2.ListDeviceTransitionsRequest(device=udid, page_size=2, page_token=token)
        )
        assert len(page.transitions) <= 2
        rows += page.transitions
        token = page.next_page_token
        if not token:
            break
    seqs = [row.seq for row in rows]
    assert seqs == sorted(seqs, reverse=True) and len(set(seqs)) == len(seqs), "the newest first"
    assert {row.device for row in rows} == {udid}
    return [words(row) for row in reversed(rows)]


def until_on_record(fleet, udid, told, watcher):
    """A phone's history once it ends with what was told: it is on record a
    moment later."""
    while (rows := history(fleet, udid))[-len(told) :] != told:
        watcher.step()
    return rows


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def gateway(lab, tmp_path_factory):
    directory = tmp_path_factory.mktemp("gateway")
    gateway = Gateway(directory, lab.usbmuxd, FLEETGATE_SERVER__HEARTBEAT_INTERVAL="50ms")
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def channel(gateway):
    with gateway.channel() as channel:
        yield channel


@pytest.fixture(scope="module")
def fleet(channel):
    return fleet_pb2_grpc.FleetServiceStub(channel)


@pytest.fixture
def watcher(fleet, lab):
    for udid in lab.udids.values():
        await_attached(fleet, udid)
    watcher = Watcher(fleet).until_synced()
    watcher.until(lambda: [d.state for d in watcher.devices.values()] == [READY] * PHONES)
    yield watcher
    watcher.end()


def test_a_watcher_is_told_of_all_that_operators_and_cables_do_to_a_phone(channel, fleet, lab, watcher):
    udid = lab.udids["plain"]
    start, begun = watcher.cursor, len(watcher.events)

    def phone():
        return watcher.devices[udid]

    updated = fleet.UpdateDevice(
        fleet_pb2.UpdateDeviceRequest(device=udid.lower(), alias="anna", set_labels={"rack": "7"})
    )
    watcher.until(lambda: phone().alias == "anna")
    assert dict(phone().labels) == {"rack": "7"} == dict(updated.device.labels)

    fleet.CordonDevice(fleet_pb2.CordonDeviceRequest(device="anna", reason="a new battery"))
    watcher.until(lambda: phone().HasField("cordon"))
    assert phone().cordon.reason == "a new battery" and phone().cordon.who
    automation = automation_pb2_grpc.AutomationServiceStub(channel)
    press = automation_pb2.PressButtonRequest(
        device="anna", button=automation_pb2.BUTTON_VOLUME_UP, command_id="pressed"
    )
    with pytest.raises(grpc.RpcError) as refused:
        automation.PressButton(press)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    fleet.UncordonDevice(fleet_pb2.UncordonDeviceRequest(device="anna"))
    watcher.until(lambda: not phone().HasField("cordon"))

    lab.act("plain", "detach", transport="usb")
    watcher.until(lambda: phone().state == DETACHED)
    assert phone().state_reason == "UNPLUGGED"
    lab.act("plain", "attach", transport="usb")
    watcher.until(lambda: phone().state == READY)
    told = ["DETACHED by UNPLUGGED", "ATTACHED by PLUGGED", "READY by RUNNER_READY"]
    assert watcher.transitions(udid)[-3:] == told

    press.command_id = "pressed-then"
    assert automation.PressButton(press).receipt.fate == command_pb2.FATE_COMPLETED
    watcher.until(lambda: watcher.events and watcher.events[-1].HasField("command"))
    fate = watcher.events[-1].command
    assert (fate.command_id, fate.device, fate.fate) == ("pressed-then", udid, command_pb2.FATE_COMPLETED)

    seqs = [event.seq for event in watcher.events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), "nothing twice and nothing left out"
    assert all(watcher.cursors) and watcher.gaps == 0
    since = watcher.events[begun:]
    # Any cursor goes on behind its message.
    for cursor, expected in [(start, since), (watcher.cursors[begun], since[1:]), (watcher.cursors[-2], since[-1:])]:
        resumed = Watcher(fleet, cursor).until_synced()
        assert resumed.events[: len(expected)] == expected and resumed.gaps == 0
        resumed.end()
    until_on_record(fleet, udid, told, watcher)


def test_the_history_of_a_phone_is_what_its_watcher_was_told(fleet, lab, watcher):
    udid = lab.udids["audited"]
    for _ in range(3):
        lab.act("audited", "detach", transport="usb")
        watcher.until(lambda: watcher.devices[udid].state == DETACHED)
        lab.act("audited", "attach", transport="usb")
        watcher.until(lambda: watcher.devices[udid].state == READY)
    told = watcher.transitions(udid)
    assert len(told) >= 9
    rows = until_on_record(fleet, udid, told, watcher)
    assert rows[0] == "ATTACHED by PLUGGED"


def test_a_watcher_of_hosts_hears_of_nothing_else_and_of_silence(fleet, lab, watcher):
    hosts = Watcher(fleet, types=[fleet_pb2.FLEET_EVENT_TYPE_HOST]).until_synced()
    lab.send("/usbmuxd/stop")
    hosts.until(lambda: hosts.events)
    watcher.until(lambda: all(device.stale for device in watcher.devices.values()))
    assert {device.state for device in watcher.devices.values()} == {READY}, "as they were last known"
    lab.send("/usbmuxd/start", reuse_ids=True)
    hosts.until(lambda: len(hosts.events) == 2)
    changes = [event.host_changed for event in hosts.events]
    assert [host.connected for host in changes] == [False, True]
    assert changes[0].last_error and changes[1].generation > changes[0].generation
    watcher.until(lambda: not any(device.stale for device in watcher.devices.values()))
    beats = hosts.heartbeats
    hosts.until(lambda: hosts.heartbeats >= beats + 3)
    hosts.end()


def test_a_cursor_of_an_earlier_gateway_is_a_gap_and_the_fleet_follows(lab, tmp_path):
    cursor = ""
    for expected_gaps in (0, 1):
        gateway = Gateway(tmp_path, lab.usbmuxd)
        with gateway.channel() as channel:
            fleet = fleet_pb2_grpc.FleetServiceStub(channel)
            await_attached(fleet, lab.udids["plain"])
            watcher = Watcher(fleet, cursor).until_synced()
            assert watcher.gaps == expected_gaps
            watcher.until(lambda: len(watcher.devices) == PHONES)
            cursor = watcher.cursor
            watcher.end()
        assert gateway.stop() == 0
