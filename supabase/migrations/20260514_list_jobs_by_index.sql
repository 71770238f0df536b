-- The operators' list of jobs (20260512) walks the newest jobs, or those of one account, and not the table. The build
-- keeps writers out for as long as it reads the jobs, about a second for a million of them. Where that is too long, build
-- both under these names with "create index concurrently" before: this file then finds them there.

-- An index that a failed concurrent build left behind is not valid, yet "if not exists" would take it for ours. Where there
-- is one, readers wait too until both are built: better drop it, concurrently, before.
do $$
declare
  v_index regclass;
begin
  for v_index in
    select indexrelid from pg_catalog.pg_index
    where not indisvalid and indexrelid in (
      to_regclass('public.snaptrade_sync_jobs_created'), to_regclass('public.snaptrade_sync_jobs_account'))
  loop
    execute format('drop index %s', v_index);
  end loop;
end $$;

create index if not exists snaptrade_sync_jobs_created on public.snaptrade_sync_jobs (created_at, id);
create index if not exists snaptrade_sync_jobs_account on public.snaptrade_sync_jobs (account_id, created_at, id);
