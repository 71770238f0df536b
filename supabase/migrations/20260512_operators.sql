-- What operators see and do: jobs, dead jobs, replay, the figures of health and metrics.

-- {status?, accountId?, jobIds?, before?: {createdAt, jobId}, limit} -> {jobs: [...]} newest first, those before the cursor.
-- created_at never changes: a list that is read page by page shows each job once, whatever becomes of it meanwhile.
-- Planned for each request: a filter that is not asked for then costs nothing, and each of the others takes its index, but
-- done, superseded and gone, which are met on the walk from the newest.
create function public.snaptrade_list_jobs(request jsonb) returns jsonb
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
set plan_cache_mode = force_custom_plan as $$
begin
  return jsonb_build_object('jobs', (
    select coalesce(jsonb_agg(jsonb_build_object('jobId', j.id, 'workType', j.work_type,
      'accountId', j.account_id, 'status', j.status, 'reason', j.reason, 'attempts', j.attempts, 'delivery', j.delivery,
      'dueAt', j.due_at, 'leaseUntil', j.lease_until, 'lastError', j.last_error, 'createdAt', j.created_at,
      'startedAt', j.started_at, 'finishedAt', j.finished_at, 'calls', public.snaptrade_calls(j.work_type, j.account_id))
      order by j.created_at desc, j.id desc), '[]')
    from (
      select * from public.snaptrade_sync_jobs
      where (request ->> 'status' is null or status = request ->> 'status')
        and (request ->> 'accountId' is null or account_id = request ->> 'accountId')
        and (request -> 'jobIds' is null or id = any (array(select jsonb_array_elements_text(request -> 'jobIds')::uuid)))
        and (request -> 'before' is null or (created_at, id)
          < ((request #>> '{before,createdAt}')::timestamptz, (request #>> '{before,jobId}')::uuid))
      order by created_at desc, id desc limit (request ->> 'limit')::integer) j));
end $$;

-- {accountId} -> {account: {accountId, userId, gone} | null}. gone: its jobs would close without a read.
create function public.snaptrade_find_account(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' as $$
  select jsonb_build_object('account', (
    select jsonb_build_object('accountId', a.account_id, 'userId', a.user_id,
      'gone', public.snaptrade_account_is_gone(a.account_id))
    from public.snaptrade_accounts a where a.account_id = request ->> 'accountId'));
$$;

-- dead -> queued with fresh attempts, or superseded where a queued job of the key stands already.
--   {items: [{jobId, workType, accountId}]} -> {publish: [...], superseded: [jobId], notDead: [jobId]}
create function public.snaptrade_replay_jobs(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_item record;
  v_job public.snaptrade_sync_jobs;
  v_queued uuid;
  v_publish jsonb := '[]';
  v_superseded jsonb := '[]';
  v_not_dead jsonb := '[]';
begin
  for v_item in
    select * from jsonb_to_recordset(request -> 'items') as i("jobId" uuid, "workType" text, "accountId" text)
    order by "workType", "accountId"
  loop
    perform public.snaptrade_lock_key(v_item."workType", v_item."accountId");
    select * into v_job from public.snaptrade_sync_jobs where id = v_item."jobId" and status = 'dead'
      and work_type = v_item."workType" and account_id = v_item."accountId" for update;
    if v_job.id is null then
      v_not_dead := v_not_dead || to_jsonb(v_item."jobId");
      continue;
    end if;
    select id into v_queued from public.snaptrade_sync_jobs
    where work_type = v_job.work_type and account_id = v_job.account_id and status = 'queued';
    if v_queued is not null then
      update public.snaptrade_sync_jobs set status = 'superseded' where id = v_job.id;
      v_superseded := v_superseded || to_jsonb(v_job.id);
      continue;
    end if;
    update public.snaptrade_sync_jobs
    set status = 'queued', reason = 'replay', attempts = 0, finished_at = null, failed_at = null, failed_status = null,
      pulled_attempt = null, republished = 0, due_at = clock_timestamp()
    where id = v_job.id;
    if not exists (select from public.snaptrade_sync_jobs where work_type = v_job.work_type
      and account_id = v_job.account_id and status = 'running') then
      v_publish := v_publish || public.snaptrade_hand_out_delivery(v_job.id);
    end if;
  end loop;
  return jsonb_build_object('publish', v_publish, 'superseded', v_superseded, 'notDead', v_not_dead);
end $$;

-- The gauges of health and metrics, in one call. overdue: queued jobs 15 min past due_at, for the caller to compare with
-- their slots; first those that reconcile has published again, for a backlog merely waits. {} -> {queued, running, dead, oldestQueuedMs, heartbeatAt, heartbeatAgeMs, overdue: [...]}
create function public.snaptrade_read_health(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' as $$
  select jsonb_build_object(
    'queued', (select count(*) from public.snaptrade_sync_jobs where status = 'queued'),
    'running', (select count(*) from public.snaptrade_sync_jobs where status = 'running'),
    'dead', (select count(*) from public.snaptrade_sync_jobs where status = 'dead'),
    'oldestQueuedMs', (select extract(epoch from clock_timestamp() - min(created_at)) * 1000
      from public.snaptrade_sync_jobs where finished_at is null and lease_until is null),
    'heartbeatAt', (select at from public.snaptrade_service_state where name = 'reconcile'),
    'heartbeatAgeMs', (select extract(epoch from clock_timestamp() - at) * 1000
      from public.snaptrade_service_state where name = 'reconcile'),
    'overdue', (select coalesce(jsonb_agg(jsonb_build_object('jobId', o.id, 'delivery', o.delivery,
      'republished', o.republished)), '[]') from (
      select q.id, q.delivery, q.republished from public.snaptrade_sync_jobs q
      where q.status = 'queued' and q.due_at < clock_timestamp() - interval '15 minutes'
        and not exists (select from public.snaptrade_sync_jobs r where r.work_type = q.work_type
          and r.account_id = q.account_id and r.status = 'running' and r.lease_until > clock_timestamp())
      order by q.republished desc, q.due_at limit 500) o));
$$;
