-- A ledger that a gateway of schema 2 wrote: sqlite3's dump of it, as it was.
-- The intent of its last command is open, since that gateway was killed.
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
INSERT INTO _sqlx_migrations VALUES(1,'commands and fates','2026-11-30 15:29:12',1,X'46cfeb8d2e2780eadf648a83557e2b725df2bcc2d59a001aee384839c3df011ba4fdcd1952029ace28655ed231839130',1378914);
INSERT INTO _sqlx_migrations VALUES(2,'chain and retention','2026-11-30 15:29:12',1,X'54563b55bb7fd6f15408a9be03e97f1c9eb7fdb96f580b656fa7dde08902b7cbeed30d69089d89fef9df7c97372314c2',2748965);
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
INSERT INTO commands VALUES(5,'01a22d13-0d23-7047-9ea0-e4d6b195021a','00008110-00F1EE7000000003','viewport',0,'com.example.settings','{}','127.0.0.1:47348',1796052552999223,'{}');
INSERT INTO commands VALUES(6,'01a22d13-0d23-7047-9ea0-e4d537657097','00008110-00F1EE7000000003','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:47348',1796052553001422,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(7,'01a22d13-1755-7040-9c6d-5762f78f94cb','00008110-00F1EE7000000001','viewport',0,'com.example.settings','{}','127.0.0.1:56832',1796052555607950,'{}');
INSERT INTO commands VALUES(8,'01a22d13-1755-7040-9c6d-5761f87e8967','00008110-00F1EE7000000001','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:56832',1796052555611215,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(9,'01a22d12-968c-7151-9b00-675a2d38629a','00008110-00F1EE7000000001','viewport',0,'com.example.settings','{}','127.0.0.1:56832',1796052555621758,'{}');
INSERT INTO commands VALUES(10,'01a22d13-1771-745f-b249-4cda8648e452','00008110-00F1EE7000000001','viewport',0,'com.example.absent','{}','127.0.0.1:56832',1796052555636010,'{}');
INSERT INTO commands VALUES(11,'01a22d13-1771-745f-b249-4cd9b75bf019','00008110-00F1EE7000000001','tap',1,'com.example.absent','{}','127.0.0.1:56832',1796052555638498,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(12,'01a22d13-177e-758f-bf7b-619cbd575798','00008110-00F1EE7000000002','viewport',0,'com.example.settings','{}','127.0.0.1:56832',1796052555648429,'{}');
INSERT INTO commands VALUES(13,'01a22d13-177d-7060-8a63-826180c8de53','00008110-00F1EE7000000002','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:56832',1796052555651255,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
INSERT INTO commands VALUES(14,'01a22d13-1791-72fd-ad6f-93c7c109b798','00008110-00F1EE7000000003','viewport',0,'com.example.settings','{}','127.0.0.1:56832',1796052555670501,'{}');
INSERT INTO commands VALUES(15,'01a22d13-1791-72fd-ad6f-93c638c1d937','00008110-00F1EE7000000003','tap',1,'com.example.settings','{"numberOfTaps":1,"x":196.5,"y":213}','127.0.0.1:56832',1796052555674364,'{"number_of_taps":1,"point":{"normalized":{"x":0.5,"y":0.25}}}');
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
INSERT INTO fates VALUES(5,5,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,60,3742,1796052552999223,NULL,NULL,NULL,NULL,0);
INSERT INTO fates VALUES(6,6,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,1,0,0,1796052555582653,'{"said":"tapped"}',17,NULL,'the runner''s journal has it',1);
INSERT INTO fates VALUES(7,7,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,2225,1796052555607950,NULL,NULL,NULL,NULL,0);
INSERT INTO fates VALUES(8,8,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,76,4581,1796052555614836,'{"said":"tapped"}',17,NULL,NULL,0);
INSERT INTO fates VALUES(9,9,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,67,2431,1796052555621758,NULL,NULL,NULL,NULL,0);
INSERT INTO fates VALUES(10,9,1,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,67,2408,1796052555628726,NULL,NULL,NULL,NULL,0);
INSERT INTO fates VALUES(11,10,0,'FAILED','NONE','APP_NOT_AVAILABLE','APP_NOT_AVAILABLE: com.example.absent is not running',NULL,0,1,0,43,2372,1796052555636010,NULL,NULL,'launch the app first',NULL,0);
INSERT INTO fates VALUES(12,11,0,'NOT_SENT','NONE','APP_NOT_AVAILABLE','the viewport could not be read: APP_NOT_AVAILABLE: com.example.absent is not running',NULL,0,0,0,43,0,1796052555638498,'{"refused":{"code":9}}',22,'launch the app first',NULL,0);
INSERT INTO fates VALUES(13,12,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,83,2325,1796052555648429,NULL,NULL,NULL,NULL,0);
INSERT INTO fates VALUES(14,13,0,'UNKNOWN','UNKNOWN','FATE_UNKNOWN','sent, with an unknown fate: the connection broke after the command was sent: connection closed before message completed',NULL,0,1,0,83,7305,1796052555657902,'{"refused":{"code":2}}',22,'look at the screen before doing it again: it may have happened',NULL,0);
INSERT INTO fates VALUES(15,14,0,'COMPLETED','APPLIED',NULL,NULL,NULL,0,1,0,60,4779,1796052555670501,NULL,NULL,NULL,NULL,0);
CREATE TABLE identity (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    ledger_id  TEXT    NOT NULL CHECK (length(ledger_id) = 32),
    created_us INTEGER NOT NULL CHECK (created_us >= 0)
) STRICT;
INSERT INTO identity VALUES(1,'5e5f8eb6646bc01d1e4f0cb18d46311f',1796052552924190);
CREATE TABLE operations (
    seq    INTEGER PRIMARY KEY,
    who    TEXT    NOT NULL CHECK (who <> ''),
    what   TEXT    NOT NULL CHECK (what <> ''),
    target TEXT,
    detail TEXT    NOT NULL CHECK (json_type(detail) = 'object'),
    at_us  INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;
INSERT INTO operations VALUES(1,'ledger','prune',NULL,'{"commands":4,"maxAgeSeconds":1,"maxBytes":null}',1796052553998633);
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
INSERT INTO checkpoints VALUES(1,'5e5f8eb6646bc01d1e4f0cb18d46311f',7,X'90568539352380f851f2a79d270288b23511bc84cf8a63d315fad33c5dfdb598',1796052552982570,4,1796052553992940);
CREATE TABLE chain (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    kind      TEXT    NOT NULL CHECK (kind <> ''),
    reference INTEGER NOT NULL,
    at_us     INTEGER NOT NULL CHECK (at_us >= 0),
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO chain VALUES(8,'recorded',5,1796052552999223,X'd1f6c1458a345a2a6b908241d2d7b71ebd85cd1f30af858abccf2cc49614d51c');
INSERT INTO chain VALUES(9,'intended',6,1796052553001422,X'b472bb61e5b71477e914c28bc232c8c63dd150c1a3285459cc369be99f7882b7');
INSERT INTO chain VALUES(10,'pruned',1,1796052553992940,X'b294cda837271a01b2056d5bfb0225c17dbc5ecaec7cb9b42fc587ccc5d048ea');
INSERT INTO chain VALUES(11,'operation',1,1796052553998633,X'5ce7cd034420eca41586555b3803c969c846346872be577d53ddee5350a6b1d6');
INSERT INTO chain VALUES(12,'resolved',6,1796052555582653,X'88ed32e67622939f1881fd3624c56c071b219b45750f9e5669d88299ffaa6417');
INSERT INTO chain VALUES(13,'recorded',7,1796052555607950,X'557b747a74557bcd61387ff324d821258817f6917b3953aa1b72affc5a65cb2d');
INSERT INTO chain VALUES(14,'intended',8,1796052555611215,X'25af9410727f58e0b77961631332ad51a7817402b5d1b91f3ae2564746480de1');
INSERT INTO chain VALUES(15,'concluded',8,1796052555614836,X'6f904becc399c63190338b687fe4dbf1f4d79dd7ddd0195d8b137111fe3239d7');
INSERT INTO chain VALUES(16,'recorded',9,1796052555621758,X'7ffe6b1a260ea6ee1936e9d73b4772394b57fa64ed5459a43a0d53338c7be0bf');
INSERT INTO chain VALUES(17,'repeated',10,1796052555628726,X'0dd1f1088a46ab843d4f5f3a84f6f32f452a7f89b3d8e5ce221bbb06b2ed3e48');
INSERT INTO chain VALUES(18,'recorded',11,1796052555636010,X'7382edcc84fcf6c5cf7ba98f3f9d66266a584b8632907457c3daaf6c982a6bfb');
INSERT INTO chain VALUES(19,'recorded',12,1796052555638498,X'7899ab2e84fdb76dbd1596dbeadb1f05e65a468d70368caedaa870a4fce3ec22');
INSERT INTO chain VALUES(20,'recorded',13,1796052555648429,X'710f3a64321e76e1086a4f1a7bd1c2abf2fa466c87e22295e20a9601a3889cd7');
INSERT INTO chain VALUES(21,'intended',13,1796052555651255,X'e5f593153cd59a33b238c6999297f5df54fd9f79a68b954cdf567f8898f1f283');
INSERT INTO chain VALUES(22,'concluded',14,1796052555657902,X'2a080567a8a3ca7b6f493f6e2a32960e14b257fe3d85c6aa1412807bde19b9f6');
INSERT INTO chain VALUES(23,'recorded',15,1796052555670501,X'f0a9dca2f492ee81b7a6d25147968e9810c5d882101f00b921fc68b442643119');
INSERT INTO chain VALUES(24,'intended',15,1796052555674364,X'd205975f691ac02b3a743ec35cdd3c23b17c62ddbaf54c248f1453f3031e5820');
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
COMMIT;
