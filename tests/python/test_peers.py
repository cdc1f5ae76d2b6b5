"""Real peers on the device side: libimobiledevice's tools as clients of the
simulated usbmuxd, and the usbmuxd daemon itself as a server to the gateway."""

import os
import pathlib
import socket
import subprocess
import time
import urllib.request

import pytest
from fleetgate.v1 import fleet_pb2, fleet_pb2_grpc

from conftest import Gateway

DAEMON_SOCKET = pathlib.Path("/var/run/usbmuxd")


def test_idevice_id_lists_the_simulated_phones(lab):
    listed = subprocess.run(
        ["idevice_id", "-l"],
        env={**os.environ, "USBMUXD_SOCKET_ADDRESS": lab.usbmuxd},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert sorted(listed.stdout.split()) == sorted(lab.udids.values())


def test_iproxy_carries_a_command_to_a_simulated_runner(lab):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    proxy = subprocess.Popen(
        ["iproxy", "-u", lab.udids["plain"], f"{port}:8100"],
        env={**os.environ, "USBMUXD_SOCKET_ADDRESS": lab.usbmuxd},
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/", data=b'{"command":"status"}')
                with urllib.request.urlopen(request, timeout=10) as reply:
                    body = reply.read()
                break
            except OSError:
                assert time.monotonic() < deadline, "iproxy did not come up"
                time.sleep(0.05)
        assert b'"state":"idle"' in body
    finally:
        proxy.terminate()
        proxy.wait(timeout=10)


def test_the_real_usbmuxd_is_listened_to(tmp_path):
    if DAEMON_SOCKET.exists() and _answers(DAEMON_SOCKET):
        _check_connected(tmp_path)
        return
    if os.geteuid() != 0:
        pytest.fail("no usbmuxd is running and only root can start one: run `sudo usbmuxd -n` first")
    daemon = subprocess.Popen(["usbmuxd", "-f", "-n"], stderr=subprocess.DEVNULL)
    try:
        _check_connected(tmp_path)
    finally:
        daemon.terminate()
        daemon.wait(timeout=20)


def _answers(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _check_connected(directory):
    gateway = Gateway(directory, str(DAEMON_SOCKET))
    try:
        with gateway.channel() as channel:
            fleet = fleet_pb2_grpc.FleetServiceStub(channel)
            deadline = time.monotonic() + 20
            while True:
                host = fleet.GetGateway(fleet_pb2.GetGatewayRequest()).mux_hosts[0]
                if host.connected:
                    break
                assert time.monotonic() < deadline, host.last_error
                time.sleep(0.05)
            assert host.generation >= 1
    finally:
        assert gateway.stop() == 0
