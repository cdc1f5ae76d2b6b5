"""A lab and a gateway as processes of their own, and a grpcio client's channel.

The stubs are generated from proto/ by grpcio-tools; nothing here shares code
with the gateway.
"""

import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

import grpc
import pytest
from fleetgate.v1 import device_pb2, fleet_pb2

BINARY = os.environ.get("FLEETGATE_BIN", "target/debug/fleetgate")
SETTINGS = "com.example.settings"
# Before the first probe of its runner, and after it.
DRIVABLE = (device_pb2.DEVICE_STATE_ATTACHED, device_pb2.DEVICE_STATE_READY)

SCENARIO = """
time_scale = 0.05

[[phones]]
name = "plain"

[[phones]]
name = "audited"

[[phones]]
name = "large"
screen = { rows = 1600, dense = true, noise = true, scale = 3 }
"""


class Process:
    """A `fleetgate` process whose standard output is read line by line."""

    def __init__(self, *arguments, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FLEETGATE_", "USBMUXD_"))}
        self.process = subprocess.Popen(
            [BINARY, *arguments],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**kept, **variables},
            text=True,
        )

    def find(self, pattern):
        """The first group of the next line that matches."""
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                return found.group(1)
        raise AssertionError(f"ended without a line like {pattern}")

    def stop(self):
        """Ends it as a service manager would; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Lab(Process):
    """A simulated lab, with its control API."""

    def __init__(self, directory):
        scenario = directory / "scenario.toml"
        scenario.write_text(SCENARIO)
        super().__init__(
            "lab", "--scenario", str(scenario), "--tcp", "127.0.0.1:0", "--control", "127.0.0.1:0"
        )
        self.usbmuxd = self.find(r"usbmuxd: (127\.0\.0\.1:\d+)")
        self.control = self.find(r"control: (http://127\.0\.0\.1:\d+)")
        self.udids = {phone["name"]: phone["udid"] for phone in self.get("/phones")}

    def get(self, path):
        with urllib.request.urlopen(self.control + path, timeout=10) as reply:
            return json.load(reply)

    def phone(self, name):
        """Everything that can be seen of a phone."""
        return self.get(f"/phones/{self.udids[name]}")

    def send(self, path, **body):
        """Does something to the lab, as its control API has it."""
        request = urllib.request.Request(
            self.control + path,
            data=json.dumps(body).encode() if body else b"",
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()

    def act(self, name, what, **body):
        """Does something to a phone."""
        self.send(f"/phones/{self.udids[name]}/{what}", **body)

    def fault(self, name, **fault):
        """Plants a fault on a phone."""
        self.act(name, "faults", **fault)


class Gateway(Process):
    """A gateway before a usbmuxd, as it is by default: it knows its own user by the
    token in its discovery record."""

    def __init__(self, directory: pathlib.Path, usbmuxd, **variables):
        self.runtime = directory / "run"
        super().__init__(
            "serve",
            FLEETGATE_RUNTIME_DIR=str(self.runtime),
            FLEETGATE_SERVER__LISTEN="127.0.0.1:0",
            FLEETGATE_LEDGER__PATH=str(directory / "ledger.db"),
            FLEETGATE_USBMUXD__ADDRESS=usbmuxd,
            FLEETGATE_RUNNER__PORT="8100",
            FLEETGATE_LOG__FILTER="warn",
            **variables,
        )
        self.address = self.find(r"listening on http://(\S+)")

    def token(self):
        """What makes a caller its user."""
        (record,) = self.runtime.glob("*.json")
        return json.loads(record.read_text())["token"]

    def channel(self):
        """A channel of its user with default options: 4 MiB per message."""
        credentials = grpc.composite_channel_credentials(
            grpc.local_channel_credentials(), grpc.access_token_call_credentials(self.token())
        )
        return grpc.secure_channel(self.address, credentials)


def await_attached(fleet, udid):
    """Attaching is asynchronous: the gateway may be younger than its fleet."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        devices = fleet.ListDevices(fleet_pb2.ListDevicesRequest()).devices
        if any(d.udid == udid and d.state in DRIVABLE for d in devices):
            return
        time.sleep(0.02)
    raise AssertionError(f"{udid} was not attached in time")


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()


@pytest.fixture(scope="session")
def gateway(lab, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), lab.usbmuxd)
    yield gateway
    assert gateway.stop() == 0, "a gateway that is told to stop drains and exits with 0"


@pytest.fixture(scope="session")
def channel(gateway):
    with gateway.channel() as channel:
        yield channel
