"""A gateway that others than its host can reach: TLS, certificates of its callers,
and tokens, by a client that this project did not write.

The certificates are made by openssl's command line.
"""

import os
import subprocess
import time

import grpc
import pytest
from fleetgate.v1 import fleet_pb2, fleet_pb2_grpc, lease_pb2, lease_pb2_grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from conftest import BINARY, Process

SUBJECTS = {"server": "/CN=gateway.lab", "scheduler": "/O=Lab/CN=scheduler", "other": "/CN=other"}

CONFIG = """
[server]
listen = "0.0.0.0:0"
[tls]
certificate = "{directory}/server.pem"
key = "{directory}/server.key"
client_ca = "{directory}/ca.pem"
client_certificate = "optional"
[[auth.certificate]]
subject = "CN=scheduler,O=Lab"
name = "scheduler"
role = "operator"
"""


def openssl(*arguments, directory):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def make_certificates(directory):
    """An authority, what it vouches for, and one that it does not."""
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for ca in ("ca", "strange-ca"):
        openssl(
            "req", "-x509", *new, "-days", "2", "-subj", f"/CN={ca}",
            "-keyout", f"{ca}.key", "-out", f"{ca}.pem", directory=directory,
        )
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name, subject in SUBJECTS.items():
        openssl(
            "req", *new, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr",
            directory=directory,
        )
        ca = "strange-ca" if name == "other" else "ca"
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
            "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}.pem",
            directory=directory,
        )


class Guarded(Process):
    """A gateway on every address of this host."""

    def __init__(self, directory, usbmuxd):
        self.directory = directory
        (directory / "fleetgate.toml").write_text(CONFIG.format(directory=directory))
        super().__init__(
            "serve",
            FLEETGATE_CONFIG=str(directory / "fleetgate.toml"),
            FLEETGATE_RUNTIME_DIR=str(directory / "run"),
            FLEETGATE_AUTH__TOKENS=str(directory / "tokens.toml"),
            FLEETGATE_LEDGER__PATH=str(directory / "ledger.db"),
            FLEETGATE_USBMUXD__ADDRESS=usbmuxd,
            FLEETGATE_RUNNER__PORT="8100",
            FLEETGATE_LOG__FILTER="error",
        )
        self.port = self.find(r"listening on https://0\.0\.0\.0:(\d+)")

    def read(self, name):
        return (self.directory / name).read_bytes()

    def channel(self, token=None, certificate=None, authority="ca"):
        """A channel over TLS, by whoever this is."""
        own = [f"{certificate}.key", f"{certificate}.pem"] if certificate else []
        key, chain = [self.read(name) for name in own] or (None, None)
        credentials = grpc.ssl_channel_credentials(self.read(f"{authority}.pem"), key, chain)
        if token:
            shown = grpc.access_token_call_credentials(token)
            credentials = grpc.composite_channel_credentials(credentials, shown)
        return grpc.secure_channel(f"localhost:{self.port}", credentials)


@pytest.fixture(scope="module")
def guarded(lab, tmp_path_factory):
    directory = tmp_path_factory.mktemp("guarded")
    make_certificates(directory)
    gateway = Guarded(directory, lab.usbmuxd)
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def token(guarded):
    """The token of a viewer."""
    arguments = ["token", "create", "--name", "viewer", "--role", "viewer", "--tokens"]
    made = subprocess.run(
        [BINARY, *arguments, str(guarded.directory / "tokens.toml")],
        env={k: v for k, v in os.environ.items() if not k.startswith("FLEETGATE_")},
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()


def refusal(call):
    """The code and the reason of a call that must be refused."""
    with pytest.raises(grpc.RpcError) as refused:
        call()
    status = rpc_status.from_call(refused.value)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details if status else []:
        detail.Unpack(info)
    return refused.value.code(), info.reason


def wish():
    return lease_pb2.CreateLeaseRequest(device_match=lease_pb2.DeviceMatch(count=1000))


def ask(channel, timeout=10):
    return fleet_pb2_grpc.FleetServiceStub(channel).GetGateway(
        fleet_pb2.GetGatewayRequest(), timeout=timeout
    )


def test_a_certificate_of_its_authority_says_who_calls(guarded):
    with guarded.channel(certificate="scheduler") as channel:
        assert ask(channel).version
        lease = lease_pb2_grpc.LeaseServiceStub(channel).CreateLease(wish()).lease
        assert lease.owner == "cert:scheduler"
        assert lease.state == lease_pb2.LEASE_STATE_UNSATISFIABLE


def test_a_token_over_tls_says_who_calls_and_what_it_may_do(guarded, token):
    with guarded.channel(token) as channel:
        fleet = fleet_pb2_grpc.FleetServiceStub(channel)
        # Made a moment ago: a gateway that runs takes notice by itself.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                ask(channel)
                break
            except grpc.RpcError as unknown:
                assert unknown.code() == grpc.StatusCode.UNAUTHENTICATED
                time.sleep(0.02)
        assert fleet.ListDevices(fleet_pb2.ListDevicesRequest(), timeout=10) is not None
        leases = lease_pb2_grpc.LeaseServiceStub(channel)
        denied = refusal(lambda: leases.CreateLease(wish(), timeout=10))
        assert denied == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_TOO_LOW")


def test_who_shows_nothing_is_told_so_and_a_certificate_of_nobody_is_none(guarded):
    with guarded.channel() as channel:
        missing = refusal(lambda: ask(channel))
        assert missing == (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_MISSING")
    # Its authority vouches for it, and no rule names it.
    with guarded.channel(certificate="server") as channel:
        nobody = refusal(lambda: ask(channel))
        assert nobody == (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_INVALID")


def test_neither_side_speaks_to_one_that_no_authority_of_its_own_vouches_for(guarded, token):
    with guarded.channel(certificate="other") as channel:
        assert refusal(lambda: ask(channel)) == (grpc.StatusCode.UNAVAILABLE, "")
    with guarded.channel(token, authority="strange-ca") as channel:
        assert refusal(lambda: ask(channel)) == (grpc.StatusCode.UNAVAILABLE, "")
    with grpc.insecure_channel(f"localhost:{guarded.port}") as channel:
        assert refusal(lambda: ask(channel)) == (grpc.StatusCode.UNAVAILABLE, "")
