-- The tables of settlements.yaml, for one ClickHouse server. Run once:
--
--     sink sql -c examples/settlements.yaml --file examples/settlements.sql
--
-- Each settlement is one row, named by (settle_ms, id, rev): when it was settled, which it is, and its revision.
CREATE TABLE IF NOT EXISTS events
(
    settle_ms   Int64,                   -- milliseconds since 1970, as the records have it
    id          String,
    rev         UInt32,
    tenant      LowCardinality(String),
    amount      Decimal(18, 4),          -- exact: the digits of the record, never a float
    qty         UInt64,
    currency    LowCardinality(String),
    create_time DateTime64(3, 'UTC')     -- when the record was written; two writings of one settlement differ in it
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(settle_ms, 'UTC'))
-- The sort key begins with the sink's key: so it can look keys up after a crash without reading the whole table.
ORDER BY (settle_ms, id, rev)
-- How many of the last inserts ClickHouse can recognise when they are sent again. 0 (its default) would switch that off, and `sink check` refuses it.
SETTINGS non_replicated_deduplication_window = 10000;

-- A report that is kept up to date by each insert.
CREATE TABLE IF NOT EXISTS report
(
    tenant   LowCardinality(String),
    day      Date,
    currency LowCardinality(String),
    amount   Decimal(38, 4),
    qty      UInt64,
    events   UInt64
)
ENGINE = SummingMergeTree
ORDER BY (tenant, day, currency)
-- The report needs a window of its own: an insert that is repeated must be recognised here too, or it would be counted twice.
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS report_mv TO report AS
SELECT
    tenant,
    toDate(fromUnixTimestamp64Milli(settle_ms, 'UTC')) AS day,
    currency,
    sum(amount) AS amount,
    sum(qty) AS qty,
    count() AS events
FROM events
GROUP BY tenant, day, currency;
