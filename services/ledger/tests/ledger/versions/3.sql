-- A ledger that a gateway of schema 3 wrote: sqlite3's dump of it, as it was.
-- The intent of its last command is open; retention has removed its beginning.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'commands and fates','2026-11-30 20:16:09',1,X'46cfeb8d2e2780eadf648a83557e2b725df2bcc2d59a001aee384839c3df011ba4fdcd1952029ace28655ed231839130',1241390);
INSERT INTO _sqlx_migrations VALUES(2,'chain and retention','2026-11-30 20:16:09',1,X'54563b55bb7fd6f15408a9be03e97f1c9eb7fdb96f580b656fa7dde08902b7cbeed30d69089d89fef9df7c97372314c2',1765588);
INSERT INTO _sqlx_migrations VALUES(3,'devices','2026-11-30 20:16:09',1,X'ccc66afa2602f79d716995a4bd6d63df4e33fe35550f5c46e3176446cff2c7b23005087827051ef4378d3fa28d7e7dd5',1061293);
CREATE TABLE commands (
    seq           INTEGER PRIMARY KEY,
    command_id    TEXT    NOT NULL UNIQUE CHECK (command_id <> ''),
    device        TEXT    NOT NULL CHECK (device <> ''),
    -- Not a closed list: a new kind of command is no change of the schema.
    kind          TEXT    NOT NULL CHECK (kind <> ''),
    mutation      INTEGER NOT NULL CHECK (mutation IN (0, 1)),
    app_bundle_id TEXT    CHECK (app_bundle_id <> ''),
    -- Typed text is a secret: its length may be kept, itself never.
    parameters    TEXT    NOT NULL CHECK (json_type(parameters) = 'object' AND json_type(parameters, '$.text') IS NULL),
    caller        TEXT,
    created_us    INTEGER NOT NULL CHECK (created_us >= 0)
, asked TEXT
    CHECK (asked IS NULL OR (json_type(asked) = 'object' AND json_type(asked, '$.text') IS NULL))) STRICT;
INSERT INTO commands VALUES(5,'open','00008110-000978540290401E','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796069769613158,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(6,'a','00008110-000978540290401E','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796069770032477,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(7,'unknown','00008110-000978540290401E','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796069770038439,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(8,'settled','00008110-000978540290401E','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796069770044978,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(9,'r','00008110-000978540290401E','viewport',0,'com.example.settings','{}','127.0.0.1:47348',1796069770056990,'{}');
INSERT INTO commands VALUES(10,'newest','00008110-000978540290401E','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796069770076977,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
CREATE TABLE fates (
    seq            INTEGER PRIMARY KEY,
    command_seq    INTEGER NOT NULL REFERENCES commands (seq),
    -- 0 is the first word on the command; a later one corrects it.
    revision       INTEGER NOT NULL CHECK (revision >= 0),
    fate           TEXT    NOT NULL CHECK (fate IN ('NOT_SENT', 'COMPLETED', 'COMPLETED_RESULT_LOST', 'FAILED', 'UNKNOWN')),
    effect         TEXT    NOT NULL CHECK (effect IN ('NONE', 'APPLIED', 'UNKNOWN')),
    reason         TEXT,
    message        TEXT,
    warning        TEXT,
    reactivated    INTEGER NOT NULL CHECK (reactivated IN (0, 1)),
    attempts       INTEGER NOT NULL CHECK (attempts >= 0),
    recovered      INTEGER NOT NULL CHECK (recovered IN (0, 1)),
    queue_wait_us  INTEGER NOT NULL CHECK (queue_wait_us >= 0),
    device_time_us INTEGER NOT NULL CHECK (device_time_us >= 0),
    concluded_us   INTEGER NOT NULL CHECK (concluded_us >= 0), reply TEXT, reply_bytes INTEGER CHECK (reply_bytes >= 0), hint TEXT, why TEXT, final INTEGER NOT NULL DEFAULT 0 CHECK (final IN (0, 1)),
    UNIQUE (command_seq, revision)
) STRICT;
INSERT INTO fates VALUES(1,6,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,4581,1796069770033571,'{"said":"tapped"}',17,NULL,NULL,0);
INSERT INTO fates VALUES(2,7,0,'UNKNOWN','UNKNOWN','FATE_UNKNOWN','sent, with an unknown fate',NULL,0,1,0,76,4581,1796069770040966,NULL,NULL,'look at the screen',NULL,0);
INSERT INTO fates VALUES(3,8,0,'UNKNOWN','UNKNOWN','FATE_UNKNOWN','sent, with an unknown fate',NULL,0,1,0,76,4581,1796069770048995,NULL,NULL,'look at the screen',NULL,0);
INSERT INTO fates VALUES(4,8,1,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,4581,1796069770052969,'{"said":"tapped"}',17,NULL,'the runner''s journal has it',0);
INSERT INTO fates VALUES(5,9,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,4581,1796069770056990,'{"said":"tapped"}',17,NULL,NULL,0);
INSERT INTO fates VALUES(6,9,1,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,4581,1796069770060982,'{"said":"tapped"}',17,NULL,NULL,0);
CREATE TABLE identity (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    ledger_id  TEXT    NOT NULL CHECK (length(ledger_id) = 32),
    created_us INTEGER NOT NULL CHECK (created_us >= 0)
) STRICT;
INSERT INTO identity VALUES(1,'ad2b25dd5e6afc8c82fe8919fafdc65b',1796069769589675);
CREATE TABLE operations (
    seq    INTEGER PRIMARY KEY,
    who    TEXT    NOT NULL CHECK (who <> ''),
    what   TEXT    NOT NULL CHECK (what <> ''),
    target TEXT,
    detail TEXT    NOT NULL CHECK (json_type(detail) = 'object'),
    at_us  INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;
INSERT INTO operations VALUES(1,'ledger','prune',NULL,'{"commands":4,"maxAgeSeconds":0,"maxBytes":null}',1796069769649768);
INSERT INTO operations VALUES(2,'127.0.0.1:47348','cordon-device','00008110-000978540290401E','{"reason":"new battery"}',1796069770068980);
INSERT INTO operations VALUES(3,'127.0.0.1:47348','launch-runner','00008110-000978540290401E','{"reason":"new battery"}',1796069770072954);
CREATE TABLE checkpoints (
    seq               INTEGER PRIMARY KEY,
    ledger_id         TEXT    NOT NULL,
    -- The last link that was removed.
    chain_seq         INTEGER NOT NULL CHECK (chain_seq > 0),
    chain_hash        BLOB    NOT NULL CHECK (length(chain_hash) = 32),
    -- No command that was ever removed is younger, by its row or by its id.
    pruned_through_us INTEGER NOT NULL CHECK (pruned_through_us >= 0),
    -- Since the ledger was made.
    commands_pruned   INTEGER NOT NULL CHECK (commands_pruned >= 0),
    at_us             INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;
INSERT INTO checkpoints VALUES(1,'ad2b25dd5e6afc8c82fe8919fafdc65b',9,X'f7cbf727edbf8092abc631b736e4f143ffd2f06021c12f62d60dd869bfc11ce4',1796069769607409,4,1796069769631510);
CREATE TABLE chain (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    kind      TEXT    NOT NULL CHECK (kind <> ''),
    reference INTEGER NOT NULL,
    at_us     INTEGER NOT NULL CHECK (at_us >= 0),
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO chain VALUES(10,'carried',5,1796069769631510,X'a2f60fb960370b874f6b12372cee0063ebf51fc98e572f40742b8c4dd25c594a');
INSERT INTO chain VALUES(11,'pruned',1,1796069769631510,X'fde9d888d219437e613cff2ef5c84ed427af02979952c52ff0f58e1cc23b47cd');
INSERT INTO chain VALUES(12,'operation',1,1796069769649768,X'b7046f200fc66010117214c28357b359bd7c7b8915bb76cdbd5db4069210f197');
INSERT INTO chain VALUES(13,'intended',6,1796069770032477,X'30d1d5f188cc4a8f3844294cc3f676527a59eb042f90e9b37d6dddc2e31aa097');
INSERT INTO chain VALUES(14,'concluded',1,1796069770033571,X'9d88c1fa8be0dc165031d0a9c6b5e4448eb7d26e53ec0c650559b0e61631f97a');
INSERT INTO chain VALUES(15,'intended',7,1796069770038439,X'a64a678026a6486b997ac62c1a83c5a5c202eac1bb621a87f76c5646240296d9');
INSERT INTO chain VALUES(16,'concluded',2,1796069770040966,X'a573d6f53ef7e9efc0165086f666b47956e5bd45140a60c418af53f11b361e4b');
INSERT INTO chain VALUES(17,'intended',8,1796069770044978,X'e7e04afed23b800233fd2d577e83caf4810b1c5333df03a9b16ef55d4c2dff89');
INSERT INTO chain VALUES(18,'concluded',3,1796069770048995,X'7c80f6cda47c5ccd92082c43a69250a1ce9811658da7cc51b4874e3cc78504a3');
INSERT INTO chain VALUES(19,'resolved',4,1796069770052969,X'e9a3e970b45c4a86335d57aa2d8b4e7e778307cd7220a5c238753025630185a4');
INSERT INTO chain VALUES(20,'recorded',5,1796069770056990,X'33d29db795727ef02649bca81d0fe6d2b8989e3b76001a493f618a5f2317e936');
INSERT INTO chain VALUES(21,'repeated',6,1796069770060982,X'8db7607e13d6d14a2d97eb03228cdd35b863cd0285c36bf6380c76a4a2d583a1');
INSERT INTO chain VALUES(22,'transition',22,1796069770064968,X'0f6751892564a36d7cfe235088c31c74c5e761389f033ce97fe82d21134fa113');
INSERT INTO chain VALUES(23,'operation',2,1796069770068980,X'a8997f2ebad1ab290e407ed0578b2e0f1acfe9cad05054847df4f1ee3a4f0fc2');
INSERT INTO chain VALUES(24,'operation',3,1796069770072954,X'118a511bc75f574cad67c7fff38382c564ad604c33a9e675c0b6262db6b0e923');
INSERT INTO chain VALUES(25,'intended',10,1796069770076977,X'81487885116236f0703729670896409a4572618cc4683ca5831ae0f8797e4ef9');
CREATE TABLE device_transitions (
    -- That of its link in the chain.
    seq        INTEGER PRIMARY KEY CHECK (seq > 0),
    device     TEXT    NOT NULL CHECK (device <> ''),
    -- Not closed lists: a new state or reason is no change of the schema.
    from_state TEXT    NOT NULL CHECK (from_state <> ''),
    to_state   TEXT    NOT NULL CHECK (to_state <> ''),
    reason     TEXT    NOT NULL CHECK (reason <> ''),
    detail     TEXT,
    at_us      INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;
INSERT INTO device_transitions VALUES(22,'00008110-000978540290401E','ATTACHED','READY','RUNNER_READY','the runner answered',1796069770064968);
CREATE TABLE device_settings (
    device              TEXT    NOT NULL PRIMARY KEY CHECK (device <> ''),
    -- One phone's only. Compared byte for byte.
    alias               TEXT    UNIQUE CHECK (alias <> ''),
    labels              TEXT    NOT NULL CHECK (json_type(labels) = 'object'),
    cordon_reason       TEXT,
    cordon_who          TEXT,
    cordon_since_us     INTEGER CHECK (cordon_since_us >= 0),
    cordon_until_us     INTEGER CHECK (cordon_until_us >= 0),
    quarantine_reason   TEXT,
    quarantine_since_us INTEGER CHECK (quarantine_since_us >= 0),
    CHECK ((cordon_reason IS NULL) = (cordon_since_us IS NULL)),
    CHECK ((cordon_who IS NULL) = (cordon_since_us IS NULL)),
    CHECK (cordon_until_us IS NULL OR cordon_since_us IS NOT NULL),
    CHECK ((quarantine_reason IS NULL) = (quarantine_since_us IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO device_settings VALUES('00008110-000978540290401E','front desk','{"rack":"b"}','new battery','127.0.0.1:47348',1796069770068967,NULL,NULL,NULL);
CREATE TABLE survey (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    through INTEGER NOT NULL CHECK (through >= 0)
) STRICT;
INSERT INTO survey VALUES(1,0);
CREATE TABLE unsettled (
    command_seq INTEGER PRIMARY KEY
) STRICT;
CREATE INDEX commands_by_device ON commands (device);
CREATE INDEX commands_by_kind ON commands (kind);
CREATE INDEX commands_by_time ON commands (created_us);
CREATE INDEX fates_by_fate ON fates (fate, command_seq);
CREATE TRIGGER commands_are_never_changed BEFORE UPDATE ON commands
BEGIN
    SELECT RAISE(ABORT, 'a recorded command is never changed');
END;
CREATE TRIGGER fates_are_never_changed BEFORE UPDATE ON fates
BEGIN
    SELECT RAISE(ABORT, 'a recorded fate is never changed');
END;
CREATE TRIGGER identity_is_never_changed BEFORE UPDATE ON identity
BEGIN
    SELECT RAISE(ABORT, 'a ledger''s identity is never changed');
END;
CREATE TRIGGER operations_are_never_changed BEFORE UPDATE ON operations
BEGIN
    SELECT RAISE(ABORT, 'a recorded operation is never changed');
END;
CREATE TRIGGER checkpoints_are_never_changed BEFORE UPDATE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'a checkpoint is never changed');
END;
CREATE TRIGGER chain_is_never_changed BEFORE UPDATE ON chain
BEGIN
    SELECT RAISE(ABORT, 'a link of the chain is never changed');
END;
CREATE INDEX device_transitions_by_device ON device_transitions (device);
CREATE TRIGGER device_transitions_are_never_changed BEFORE UPDATE ON device_transitions
BEGIN
    SELECT RAISE(ABORT, 'a recorded transition is never changed');
END;
COMMIT;
