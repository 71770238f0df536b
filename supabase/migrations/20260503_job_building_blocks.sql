-- What the job functions share. None of these is called by the app itself. All of them run inside a transaction that holds
-- the key's advisory lock: under READ COMMITTED accept and commit would otherwise miss each other (I1, I3).
-- Times are clock_timestamp() after the lock is held: now() is the start of a transaction that may have waited.
--
-- The functions that the app calls plan with enable_seqscan off, and with them all that they call: a plan lives as long as
-- its connection, and one that was made while a table was nearly empty would read all that a storm has brought, each time.

create function public.snaptrade_lock_key(p_work_type text, p_account_id text) returns void
language sql security invoker set search_path = '' as $$
  select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('snaptrade:' || p_work_type || ':' || p_account_id, 0));
$$;

-- The same lock, or false where somebody holds it. Never waits: for work over keys in no order of theirs.
create function public.snaptrade_try_lock_key(p_work_type text, p_account_id text) returns boolean
language sql security invoker set search_path = '' as $$
  select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('snaptrade:' || p_work_type || ':' || p_account_id, 0));
$$;

create function public.snaptrade_ms_until(p_at timestamptz) returns bigint
language sql volatile security invoker set search_path = '' as $$
  select greatest(0, ceil(extract(epoch from p_at - clock_timestamp()) * 1000))::bigint;
$$;

-- A queued or a running job of the key. Each slot is asked by itself: a condition over both states fits neither of their
-- indexes, and would read the whole table.
create function public.snaptrade_is_open(p_work_type text, p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select exists (select from public.snaptrade_sync_jobs
      where work_type = p_work_type and account_id = p_account_id and status = 'queued')
    or exists (select from public.snaptrade_sync_jobs
      where work_type = p_work_type and account_id = p_account_id and status = 'running');
$$;

-- Bulk work leaves a key alone that has an open job, or a dead one: an operator must see to that first.
create function public.snaptrade_is_idle(p_work_type text, p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select not public.snaptrade_is_open(p_work_type, p_account_id) and not exists (select from public.snaptrade_sync_jobs
    where work_type = p_work_type and account_id = p_account_id and status = 'dead');
$$;

-- Whether a run reads the account too: holdings to fill a bare row (made from an event), the first reading of
-- transactions to know that SnapTrade has the history. What it has not got yet would never be read afterwards.
create function public.snaptrade_reads_account(p_work_type text, p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select case p_work_type when 'holdings' then a.detail_read_at is null
    else a.transactions_watermark is null and a.transactions_cursor is null and a.transactions_ready is not true end
  from public.snaptrade_accounts a where a.account_id = p_account_id;
$$;

-- The provider calls a run of this key needs as far as one can know: the size of its slot.
create function public.snaptrade_calls(p_work_type text, p_account_id text) returns integer
language sql stable security invoker set search_path = '' as $$
  select case p_work_type when 'holdings' then 3 else greatest(1, a.transactions_pages) end
    + public.snaptrade_reads_account(p_work_type, a.account_id)::integer
  from public.snaptrade_accounts a where a.account_id = p_account_id;
$$;

-- No run of this account may write: it was removed, its user was deleted, or its connection is disabled or removed.
create function public.snaptrade_account_is_gone(p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select not exists (
    select from public.snaptrade_accounts a
    join public.snaptrade_users u using (user_id)
    left join public.snaptrade_connections c on c.connection_id = a.connection_id
    where a.account_id = p_account_id and a.removed_at is null and u.deleted_at is null
      and coalesce(not c.disabled and c.removed_at is null, true));
$$;

-- Hands out the next delivery number: decided here, before the publish, so that an older message does nothing.
create function public.snaptrade_hand_out_delivery(p_job_id uuid) returns jsonb
language sql security invoker set search_path = '' as $$
  update public.snaptrade_sync_jobs j set delivery = j.delivery + 1, published_at = clock_timestamp()
  where j.id = p_job_id
  returning jsonb_build_object('jobId', j.id, 'workType', j.work_type, 'accountId', j.account_id, 'delivery', j.delivery,
    'calls', public.snaptrade_calls(j.work_type, j.account_id), 'dueInMs', public.snaptrade_ms_until(j.due_at));
$$;

-- Finishes the events that this job covered, once all their jobs are final. The rows are locked in order first, in a
-- statement of its own: two jobs of one event that end together must not each see the other as still running.
create function public.snaptrade_finish_events(p_job_id uuid) returns integer
language plpgsql security invoker set search_path = '' as $$
declare
  v_ids bigint[];
  v_count integer;
begin
  select array_agg(id) into v_ids from (
    select e.id from public.snaptrade_webhook_events e
    where e.finished_at is null and e.job_ids @> array[p_job_id] order by e.id for update) locked;
  update public.snaptrade_webhook_events e
  set finished_at = clock_timestamp(),
    processed = e.processed or not exists (
      select from public.snaptrade_webhook_events o where o.webhook_id = e.webhook_id and o.processed and o.id <> e.id)
  where e.id = any (v_ids) and not exists (
    select from public.snaptrade_sync_jobs j where j.id = any (e.job_ids) and j.status in ('queued', 'running'));
  get diagnostics v_count = row_count;
  return v_count;
end $$;

-- running|dead -> superseded: the queued job of the key reads later and covers the same events. It takes over the events
-- and the larger number of attempts. (The delay, where there is one, is the caller's to hand on.)
create function public.snaptrade_supersede(p_job_id uuid, p_by uuid, p_attempts integer) returns void
language plpgsql security invoker set search_path = '' as $$
begin
  update public.snaptrade_sync_jobs set status = 'superseded', lease_until = null, finished_at = clock_timestamp()
  where id = p_job_id;
  update public.snaptrade_sync_jobs set attempts = greatest(attempts, p_attempts) where id = p_by;
  update public.snaptrade_webhook_events e
  set job_ids = (select array_agg(distinct id) from unnest(array_replace(e.job_ids, p_job_id, p_by)) id)
  where e.id in (select o.id from public.snaptrade_webhook_events o
    where o.finished_at is null and o.job_ids @> array[p_job_id] order by o.id for update);
end $$;

-- queued|running -> gone, the trailing job too: nothing is left to read.
create function public.snaptrade_close_key(p_work_type text, p_account_id text) returns void
language plpgsql security invoker set search_path = '' as $$
declare
  v_id uuid;
begin
  for v_id in
    select id from public.snaptrade_sync_jobs where work_type = p_work_type and account_id = p_account_id and status = 'queued'
    union all
    select id from public.snaptrade_sync_jobs where work_type = p_work_type and account_id = p_account_id and status = 'running'
  loop
    update public.snaptrade_sync_jobs set status = 'gone', lease_until = null, finished_at = clock_timestamp() where id = v_id;
    perform public.snaptrade_finish_events(v_id);
  end loop;
end $$;

-- running -> queued, or superseded where the trailing job stands already. Returns the job that goes on.
--   p_counts: the attempt stays spent (a failed attempt, an ended lease); otherwise it is taken back.
create function public.snaptrade_requeue(p_job_id uuid, p_due_at timestamptz, p_counts boolean) returns uuid
language plpgsql security invoker set search_path = '' as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_trailing uuid;
begin
  update public.snaptrade_sync_jobs set attempts = attempts - (not p_counts)::integer where id = p_job_id
  returning * into v_job;
  select id into v_trailing from public.snaptrade_sync_jobs
  where work_type = v_job.work_type and account_id = v_job.account_id and status = 'queued' for update;
  if v_trailing is null then
    update public.snaptrade_sync_jobs set status = 'queued', lease_until = null, due_at = p_due_at where id = p_job_id;
    return p_job_id;
  end if;
  perform public.snaptrade_supersede(p_job_id, v_trailing, v_job.attempts);
  update public.snaptrade_sync_jobs set due_at = greatest(due_at, p_due_at), failed_at = v_job.failed_at,
    failed_status = v_job.failed_status, last_error = v_job.last_error
  where id = v_trailing;
  return v_trailing;
end $$;

-- After a final state of the running job: the trailing job of its key, with its delivery number, or null.
create function public.snaptrade_hand_out_trailing(p_work_type text, p_account_id text) returns jsonb
language sql security invoker set search_path = '' as $$
  select public.snaptrade_hand_out_delivery(j.id) from public.snaptrade_sync_jobs j
  where j.work_type = p_work_type and j.account_id = p_account_id and j.status = 'queued';
$$;

-- queued|running -> dead: visible, replayable; a trailing job is published as after a commit. Returns that job or null.
create function public.snaptrade_bury(p_job_id uuid, p_error text) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_job public.snaptrade_sync_jobs;
begin
  update public.snaptrade_sync_jobs
  set status = 'dead', lease_until = null, finished_at = clock_timestamp(), last_error = coalesce(p_error, last_error)
  where id = p_job_id returning * into v_job;
  perform public.snaptrade_finish_events(p_job_id);
  return public.snaptrade_hand_out_trailing(v_job.work_type, v_job.account_id);
end $$;
