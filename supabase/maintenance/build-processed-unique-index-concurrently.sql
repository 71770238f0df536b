-- For the operator of a large live table: what migration 20260501 does, without keeping writers out.
--
-- When: in a maintenance window, before the release with 20260501 is migrated. The migration then finds the index and
--   only looks for duplicates once more. A table of less than about a million rows does not need this.
-- How: psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f this-file, or step by step. Over a direct connection (port 5432),
--   not through a transaction pooler, and not with --single-transaction: steps 1, 2 and 4 cannot run in a transaction.
-- Stop it at any time: each batch of step 1 is committed by itself; after an interrupted step 4 begin again at step 2.
-- It is safe to run again from the top. "step" lines are kept by the test that runs this file.

-- step 0: no time limit for this session; give up on a lock rather than queue the writers behind us.
set statement_timeout = 0;
-- step 0
set lock_timeout = '5s';

-- step 1: settle the duplicates, 1000 rows a transaction. Of the processed rows of one id the earliest (received_at,
-- then id) stays processed, the others become processed = false; nothing is deleted.
do $$
declare
  v_settled integer;
begin
  loop
    update public.snaptrade_webhook_events e set processed = false
    where e.id in (
      select later.id from public.snaptrade_webhook_events later
      where later.webhook_id is not null and later.webhook_id !~ '^error_' and later.processed is true
        and exists (
          select from public.snaptrade_webhook_events earlier
          where earlier.webhook_id = later.webhook_id and earlier.processed is true
            and (earlier.received_at, earlier.id) < (later.received_at, later.id))
      limit 1000);
    get diagnostics v_settled = row_count;
    commit;
    exit when v_settled = 0;
    raise notice 'settled % rows', v_settled;
    perform pg_sleep(0.1);
  end loop;
end $$;

-- step 2: remove what a failed build left behind. An index that is not valid still slows down every write, and
-- "if not exists" would take it for a good one.
do $$
begin
  if exists (
    select from pg_catalog.pg_index
    where indexrelid = to_regclass('public.snaptrade_webhook_events_queued_webhook_id_unique') and not indisvalid
  ) then
    -- Takes the table's lock for a moment. When lock_timeout ends it, run
    --   drop index concurrently public.snaptrade_webhook_events_queued_webhook_id_unique;
    drop index public.snaptrade_webhook_events_queued_webhook_id_unique;
  end if;
end $$;

-- step 3: a concurrent build waits for transactions that are older than itself; that is not a lock to give up on.
set lock_timeout = 0;

-- step 4: build. "could not create unique index" (23505) means that a duplicate was accepted after step 1: the code that
-- runs is older than this index. Run the file again from the top; if it happens again, pause intake (the provider
-- sends again for hours) and run it once more.
-- Progress, from another session: select phase, blocks_done, blocks_total from pg_stat_progress_create_index;
create unique index concurrently if not exists snaptrade_webhook_events_queued_webhook_id_unique
  on public.snaptrade_webhook_events (webhook_id)
  where webhook_id is not null and webhook_id !~ '^error_' and processed is true;

-- step 5: check. One row with valid = true and the predicate of step 4. No row, or false: run the file again.
select i.indexrelid::regclass as index, i.indisvalid as valid, pg_get_expr(i.indpred, i.indrelid) as predicate
from pg_catalog.pg_index i
where i.indexrelid = to_regclass('public.snaptrade_webhook_events_queued_webhook_id_unique');
