-- Reconcile: what no message carries is published, what no worker runs is taken back (I8). Overlapping ticks are harmless:
-- a key that somebody holds is skipped, and every decision is made again under its lock.

-- Runs past their lease: running -> queued (due now) or superseded by the trailing job, at the limit dead.
--   {limit, maxAttempts} -> {taken: n, dead: [{jobId, workType, accountId}], publish: [trailing jobs of the dead]}
-- A job taken back has no message that counts any more, so it is listed as overdue without a grace.
create function public.snaptrade_take_back_leases(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_now timestamptz := clock_timestamp(); -- a volatile function would keep the index from being used
  v_candidate record;
  v_job public.snaptrade_sync_jobs;
  v_next uuid;
  v_taken integer := 0;
  v_trailing jsonb;
  v_dead jsonb := '[]';
  v_publish jsonb := '[]';
begin
  for v_candidate in
    select id, work_type, account_id from public.snaptrade_sync_jobs
    where lease_until < v_now -- running, in the words of the index of this order
    order by lease_until limit (request ->> 'limit')::integer
  loop
    continue when not public.snaptrade_try_lock_key(v_candidate.work_type, v_candidate.account_id);
    select * into v_job from public.snaptrade_sync_jobs
    where id = v_candidate.id and status = 'running' and lease_until < v_now for update skip locked;
    continue when v_job.id is null;
    v_taken := v_taken + 1;
    if v_job.attempts >= (request ->> 'maxAttempts')::integer then
      v_trailing := public.snaptrade_bury(v_job.id, 'the last attempt did not end within its lease');
      v_dead := v_dead || jsonb_build_object('jobId', v_job.id, 'workType', v_job.work_type, 'accountId', v_job.account_id);
      v_publish := case when v_trailing is null then v_publish else v_publish || v_trailing end;
    else
      v_next := public.snaptrade_requeue(v_job.id, clock_timestamp(), true);
      update public.snaptrade_sync_jobs set published_at = null where id = v_next;
    end if;
  end loop;
  return jsonb_build_object('taken', v_taken, 'dead', v_dead, 'publish', v_publish);
end $$;

-- Queued jobs past their time that no live run of their key will publish, oldest first:
--   {cursor: {createdAt, jobId} | null, limit} -> {jobs: [{jobId, workType, accountId, delivery, calls, createdAt, graceMs,
--   unpublished}]}. The grace is 30 s after due_at and the last publish, doubled by each publish of reconcile in a row
--   without a begin, at most 8 min; the caller adds it to the slot that Redis knows.
create function public.snaptrade_list_overdue(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' set enable_seqscan = off as $$
  select jsonb_build_object('jobs', coalesce(jsonb_agg(jsonb_build_object('jobId', o.id, 'workType', o.work_type,
    'accountId', o.account_id, 'delivery', o.delivery, 'calls', public.snaptrade_calls(o.work_type, o.account_id),
    'createdAt', o.created_at, 'graceMs', o.grace_ms, 'unpublished', o.unpublished) order by o.created_at, o.id), '[]'))
  from (
    select q.*, 30000 * power(2, least(q.republished, 4)) as grace_ms, q.delivery = 0 or q.published_at is null as unpublished
    from public.snaptrade_sync_jobs q
    where q.finished_at is null and q.lease_until is null -- queued, in the words of the index of this order
      and (q.created_at, q.id) > (coalesce((request #>> '{cursor,createdAt}')::timestamptz, '-infinity'),
        coalesce((request #>> '{cursor,jobId}')::uuid, '00000000-0000-0000-0000-000000000000'))
      and q.due_at < clock_timestamp()
      and (q.delivery = 0 or q.published_at is null or greatest(q.due_at, q.published_at)
        < clock_timestamp() - make_interval(secs => 30 * power(2, least(q.republished, 4))))
      and not exists (select from public.snaptrade_sync_jobs r where r.work_type = q.work_type
        and r.account_id = q.account_id and r.status = 'running' and r.lease_until > clock_timestamp())
    order by q.created_at, q.id limit (request ->> 'limit')::integer) o;
$$;

-- Hands out the next delivery of jobs that are still queued under the delivery that was listed.
--   {items: [{jobId, workType, accountId, delivery}]} -> {publish: [...]}
create function public.snaptrade_republish_jobs(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_item record;
  v_publish jsonb := '[]';
begin
  for v_item in
    select * from jsonb_to_recordset(request -> 'items') as i("jobId" uuid, "workType" text, "accountId" text, delivery integer)
    order by "workType", "accountId"
  loop
    continue when not public.snaptrade_try_lock_key(v_item."workType", v_item."accountId");
    update public.snaptrade_sync_jobs set republished = republished + 1
    where id = v_item."jobId" and status = 'queued' and delivery = v_item.delivery
      and work_type = v_item."workType" and account_id = v_item."accountId";
    if found then
      v_publish := v_publish || public.snaptrade_hand_out_delivery(v_item."jobId");
    end if;
  end loop;
  return jsonb_build_object('publish', v_publish);
end $$;

-- Ends a tick: prunes a batch of what is older than the retention, and writes the heartbeat.
--   {retentionMs, limit} -> {events, jobs}
create function public.snaptrade_end_tick(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_cutoff timestamptz := clock_timestamp() - make_interval(secs => (request ->> 'retentionMs')::numeric / 1000);
  v_events integer;
  v_jobs integer;
begin
  delete from public.snaptrade_webhook_events where id = any (array(
    select e.id from public.snaptrade_webhook_events e
    where e.received_at < v_cutoff and (e.finished_at is not null or e.outcome = 'waiting')
    order by e.received_at limit (request ->> 'limit')::integer for update skip locked));
  get diagnostics v_events = row_count;
  delete from public.snaptrade_sync_jobs where id = any (array(
    select j.id from public.snaptrade_sync_jobs j where j.finished_at < v_cutoff
    order by j.finished_at limit (request ->> 'limit')::integer for update skip locked));
  get diagnostics v_jobs = row_count;
  insert into public.snaptrade_service_state (name, at) values ('reconcile', clock_timestamp())
  on conflict (name) do update set at = excluded.at;
  return jsonb_build_object('events', v_events, 'jobs', v_jobs);
end $$;
