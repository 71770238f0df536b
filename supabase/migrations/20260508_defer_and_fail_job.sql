-- The other ends of a delivery. Each decides the publish that follows and hands out its delivery number.

-- The delay after the n-th failed attempt: 1 min, doubling, at most 6 h; 1 h at least after a 400, 401 or 403.
create function public.snaptrade_failure_delay(p_attempts integer, p_status integer) returns interval
language sql immutable security invoker set search_path = '' as $$
  select greatest(least(interval '1 minute' * power(2, least(p_attempts, 12) - 1), interval '6 hours'),
    case when p_status in (400, 401, 403) then interval '1 hour' else interval '0' end);
$$;

-- defer, before begin (no fence; queued -> queued) or in the middle of a run (fence; running -> queued). A deferral is
-- not a failure and spends no attempt.
--   {jobId, workType, accountId, delivery, fence?, notBeforeMs (a cooldown's end; else 0), parts?}
-- -> {outcome: 'deferred', publish} | {outcome: 'overtaken' | 'fenced'}
create function public.snaptrade_defer_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_due timestamptz;
  v_id uuid;
begin
  if request ->> 'fence' is null then
    perform public.snaptrade_lock_key(request ->> 'workType', request ->> 'accountId');
    v_due := clock_timestamp() + make_interval(secs => (request ->> 'notBeforeMs')::numeric / 1000);
    update public.snaptrade_sync_jobs set due_at = greatest(due_at, v_due)
    where id = (request ->> 'jobId')::uuid and status = 'queued' and delivery = (request ->> 'delivery')::integer
      and work_type = request ->> 'workType' and account_id = request ->> 'accountId'
    returning id into v_id;
    if v_id is null then
      return jsonb_build_object('outcome', 'overtaken');
    end if;
    return jsonb_build_object('outcome', 'deferred', 'publish', public.snaptrade_hand_out_delivery(v_id));
  end if;
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  perform public.snaptrade_write_parts(v_job, request -> 'parts');
  v_due := clock_timestamp() + make_interval(secs => (request ->> 'notBeforeMs')::numeric / 1000);
  return jsonb_build_object('outcome', 'deferred',
    'publish', public.snaptrade_hand_out_delivery(public.snaptrade_requeue(v_job.id, v_due, false)));
end $$;

-- give back: a run that begun but may not read (Redis did not answer). The delivery number stays, so that QStash's own
-- retry of the message goes on; where a trailing job stands, that one is published. {..., fence} -> {outcome, publish}
create function public.snaptrade_give_back_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_id uuid;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  v_id := public.snaptrade_requeue(v_job.id, clock_timestamp(), false);
  return jsonb_build_object('outcome', 'given_back',
    'publish', case when v_id <> v_job.id then public.snaptrade_hand_out_delivery(v_id) end);
end $$;

-- fail: a failed attempt. {..., fence, error, status (HTTP, 0 without an answer), permanent, maxAttempts, parts?}
-- -> {outcome: 'failed' | 'dead', publish} | {outcome: 'fenced'}
create function public.snaptrade_fail_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_status integer := (request ->> 'status')::integer;
  v_now timestamptz; -- one moment for both columns: an event must not find the delay a hair longer than its least
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  v_now := clock_timestamp();
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  perform public.snaptrade_write_parts(v_job, request -> 'parts');
  if (request ->> 'permanent')::boolean or v_job.attempts >= (request ->> 'maxAttempts')::integer then
    return jsonb_build_object('outcome', 'dead', 'publish', public.snaptrade_bury(v_job.id, request ->> 'error'));
  end if;
  update public.snaptrade_sync_jobs set failed_at = v_now, failed_status = v_status, last_error = request ->> 'error'
  where id = v_job.id;
  return jsonb_build_object('outcome', 'failed', 'publish', public.snaptrade_hand_out_delivery(public.snaptrade_requeue(
    v_job.id, v_now + public.snaptrade_failure_delay(v_job.attempts, v_status), true)));
end $$;

-- close: the provider no longer knows the account (404). Its queued jobs close too. {..., fence} -> {outcome}
-- state_at stays: only an event says that an account was removed. What a 404 alone says, a later listing that shows the
-- account, or a repaired connection, takes back (snaptrade_is_missing).
create function public.snaptrade_close_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  update public.snaptrade_accounts set removed_at = coalesce(removed_at, v_job.started_at)
  where account_id = v_job.account_id;
  perform public.snaptrade_close_key(v_job.work_type, v_job.account_id);
  return jsonb_build_object('outcome', 'gone');
end $$;

-- failure callback: QStash gave up a message. It acts only if the job is still queued under that delivery number: the
-- next delivery a minute later, never an attempt. {jobId, workType, accountId, delivery, maxAttempts}
-- -> {outcome: 'republished' | 'dead', publish} | {outcome: 'overtaken'}
create function public.snaptrade_republish_failed(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
begin
  perform public.snaptrade_lock_key(request ->> 'workType', request ->> 'accountId');
  select * into v_job from public.snaptrade_sync_jobs
  where id = (request ->> 'jobId')::uuid and status = 'queued' and delivery = (request ->> 'delivery')::integer
    and work_type = request ->> 'workType' and account_id = request ->> 'accountId' for update;
  if v_job.id is null then
    return jsonb_build_object('outcome', 'overtaken');
  end if;
  if v_job.attempts >= (request ->> 'maxAttempts')::integer then
    return jsonb_build_object('outcome', 'dead', 'publish', public.snaptrade_bury(v_job.id, 'QStash gave up its message'));
  end if;
  update public.snaptrade_sync_jobs set due_at = greatest(due_at, clock_timestamp() + interval '1 minute') where id = v_job.id;
  return jsonb_build_object('outcome', 'republished', 'publish', public.snaptrade_hand_out_delivery(v_job.id));
end $$;
