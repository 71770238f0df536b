-- I2: one webhook id is accepted at most once, whatever Redis has forgotten.
--
-- Existing duplicates are settled first: of the processed rows of one id the earliest (received_at, then id) stays
-- processed, the others become processed = false. No row is deleted. Dashboards that count processed = true see that as
-- a clean-up of duplicates. Ids that begin with error_ are not webhooks and stay as they are.
--
-- The whole file is one transaction. The lock keeps writers out between the clean-up and the build, so no duplicate can
-- slip in; readers go on. A rerun changes nothing. For a large live table, where a plain build would keep writers out
-- for too long, run supabase/maintenance/build-processed-unique-index-concurrently.sql first: this file then finds the
-- index there.

lock table public.snaptrade_webhook_events in share row exclusive mode;

update public.snaptrade_webhook_events e set processed = false
from (
  select id, row_number() over (partition by webhook_id order by received_at, id) as place
  from public.snaptrade_webhook_events
  where webhook_id is not null and webhook_id !~ '^error_' and processed is true
) d
where e.id = d.id and d.place > 1;

-- An index that a failed concurrent build left behind is not valid, yet "if not exists" would take it for ours.
do $$ begin
  if exists (
    select from pg_catalog.pg_index
    where indexrelid = to_regclass('public.snaptrade_webhook_events_queued_webhook_id_unique') and not indisvalid
  ) then
    drop index public.snaptrade_webhook_events_queued_webhook_id_unique;
  end if;
end $$;

create unique index if not exists snaptrade_webhook_events_queued_webhook_id_unique
  on public.snaptrade_webhook_events (webhook_id)
  where webhook_id is not null and webhook_id !~ '^error_' and processed is true;
