-- The tables of sink.yaml on all replicas. ON CLUSTER gives a table the same UUID everywhere, by which the sink knows it again on each replica.
CREATE TABLE IF NOT EXISTS events ON CLUSTER settlements
(
    settle_ms   Int64,
    id          String,
    rev         UInt32,
    tenant      LowCardinality(String),
    amount      Decimal(18, 4),
    qty         UInt64,
    currency    LowCardinality(String),
    create_time DateTime64(3, 'UTC')
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(settle_ms, 'UTC'))
ORDER BY (settle_ms, id, rev)
-- How many inserts, and for how long, the replicas recognise when they are sent again: a week, so that a long outage needs no reading back.
SETTINGS replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS report ON CLUSTER settlements
(
    tenant   LowCardinality(String),
    day      Date,
    currency LowCardinality(String),
    amount   Decimal(38, 4),
    qty      UInt64,
    events   UInt64
)
ENGINE = ReplicatedSummingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (tenant, day, currency)
SETTINGS replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800;

CREATE MATERIALIZED VIEW IF NOT EXISTS report_mv ON CLUSTER settlements TO report AS
SELECT
    tenant,
    toDate(fromUnixTimestamp64Milli(settle_ms, 'UTC')) AS day,
    currency,
    sum(amount) AS amount,
    sum(qty) AS qty,
    count() AS events
FROM events
GROUP BY tenant, day, currency;
