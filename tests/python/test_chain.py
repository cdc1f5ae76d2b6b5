"""The ledger's chain, computed again with nothing but what its documentation
says: sqlite3 and hashlib, and none of the gateway's code."""

import hashlib
import pathlib
import shutil
import sqlite3

import grpc
import pytest
from fleetgate.v1 import automation_pb2, automation_pb2_grpc, fleet_pb2_grpc

from conftest import SETTINGS, Gateway, await_attached

COMMAND = """c.command_id, c.device, c.kind, c.mutation, c.app_bundle_id, c.parameters, c.asked, c.caller,
             c.created_us, c.principal, c.lease_id, c.lease_epoch"""
# Those that are left out where a command has none of them.
LATER = 3
FATE = """c.command_id, f.revision, f.fate, f.effect, f.reason, f.message, f.warning, f.hint, f.reactivated,
          f.attempts, f.recovered, f.queue_wait_us, f.device_time_us, f.reply, f.reply_bytes, f.why, f.final,
          f.concluded_us"""
OF_FATE = f"SELECT {FATE} FROM fates AS f JOIN commands AS c ON c.seq = f.command_seq WHERE f.seq = ?"

CONTENT = {
    "opened": "SELECT ledger_id, created_us FROM identity WHERE one = ?",
    "concluded": OF_FATE,
    "repeated": OF_FATE,
    "resolved": OF_FATE,
    "carried_fate": OF_FATE,
    "recorded": OF_FATE,
    "operation": "SELECT who, what, target, detail, at_us FROM operations WHERE seq = ?",
    "transition": """SELECT device, from_state, to_state, reason, detail, at_us
                     FROM device_transitions WHERE seq = ?""",
    "pruned": """SELECT ledger_id, chain_seq, chain_hash, pruned_through_us, commands_pruned, at_us
                 FROM checkpoints WHERE seq = ?""",
}
OF_COMMAND = f"SELECT {COMMAND} FROM commands AS c WHERE c.seq = ?"
COMMANDS = {
    "intended": OF_COMMAND,
    "carried": OF_COMMAND,
    "recorded": f"SELECT {COMMAND} FROM fates AS f JOIN commands AS c ON c.seq = f.command_seq WHERE f.seq = ?",
}


def content(database, kind, reference):
    """The columns that a link binds."""
    values = []
    if kind in COMMANDS:
        command = database.execute(COMMANDS[kind], (reference,)).fetchone()
        assert command is not None, f"the command of {kind} {reference} is missing"
        values += command if any(value is not None for value in command[-LATER:]) else command[:-LATER]
    if kind in CONTENT:
        row = database.execute(CONTENT[kind], (reference,)).fetchone()
        assert row is not None, f"what {kind} {reference} binds is missing"
        values += row
    return values


def encoded(value):
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i" + value.to_bytes(8, "big", signed=True)
    tag, value = (b"t", value.encode()) if isinstance(value, str) else (b"b", value)
    return tag + len(value).to_bytes(8, "big") + value


def walk(path):
    """The kinds of the chain's events; fails at the first that does not hold."""
    database = sqlite3.connect(path)
    seq, previous = database.execute(
        "SELECT chain_seq, chain_hash FROM checkpoints ORDER BY seq DESC LIMIT 1"
    ).fetchone() or (0, bytes(32))
    kinds = []
    for link in database.execute("SELECT seq, kind, reference, at_us, hash FROM chain ORDER BY seq"):
        *event, hash_ = link
        seq += 1
        assert event[0] == seq, "a link is missing"
        bound = content(database, event[1], event[2])
        hashed = hashlib.sha256(previous + b"".join(map(encoded, [*event, *bound])))
        assert hashed.digest() == hash_, f"link {seq} does not hold"
        previous = hash_
        kinds.append(event[1])
    database.close()
    return kinds


@pytest.fixture
def ledger(lab, tmp_path):
    """The ledger of a gateway that has done a few things and ended."""
    gateway = Gateway(tmp_path, lab.usbmuxd)
    with gateway.channel() as channel:
        automation = automation_pb2_grpc.AutomationServiceStub(channel)
        device = lab.udids["audited"]
        await_attached(fleet_pb2_grpc.FleetServiceStub(channel), device)
        point = automation_pb2.Point(normalized=automation_pb2.NormalizedPoint(x=0.5, y=0.25))
        for _ in range(3):
            automation.Tap(
                automation_pb2.TapRequest(device=device, app_bundle_id=SETTINGS, point=point), timeout=30
            )
        automation.GetViewport(
            automation_pb2.GetViewportRequest(device=device, app_bundle_id=SETTINGS), timeout=30
        )
        with pytest.raises(grpc.RpcError):
            automation.Tap(
                automation_pb2.TapRequest(device=device, app_bundle_id="com.example.absent", point=point), timeout=30
            )
    assert gateway.stop() == 0
    return tmp_path / "ledger.db"


def test_the_chain_of_a_gateways_ledger_holds(ledger):
    kinds = walk(ledger)
    assert kinds[0] == "opened"
    with sqlite3.connect(ledger) as database:
        assert database.execute("SELECT DISTINCT principal FROM commands").fetchall() == [("local",)]
    assert set(kinds) == {"opened", "transition", "intended", "concluded", "recorded"}
    assert kinds.count("intended") == kinds.count("concluded") == 3


CHANGES = [
    ("commands", "principal = 'token:eve' WHERE seq = 1"),
    ("commands", "principal = NULL WHERE seq = 1"),
    ("fates", "device_time_us = device_time_us + 1 WHERE seq = 2"),
    ("device_transitions", "reason = 'UNPLUGGED'"),
    ("device_transitions", "detail = 'was here'"),
]


@pytest.mark.parametrize("table, change", CHANGES)
def test_a_changed_row_breaks_it(ledger, tmp_path, table, change):
    copy: pathlib.Path = tmp_path / "copy.db"
    shutil.copy(ledger, copy)
    database = sqlite3.connect(copy)
    database.execute(f"DROP TRIGGER {table}_are_never_changed")
    database.execute(f"UPDATE {table} SET {change}")
    database.commit()
    database.close()
    with pytest.raises(AssertionError, match="does not hold"):
        walk(copy)


def test_a_transition_that_was_removed_is_missed(ledger):
    database = sqlite3.connect(ledger)
    database.execute("DELETE FROM device_transitions WHERE seq = (SELECT max(seq) FROM device_transitions)")
    database.commit()
    database.close()
    with pytest.raises(AssertionError, match="is missing"):
        walk(ledger)
