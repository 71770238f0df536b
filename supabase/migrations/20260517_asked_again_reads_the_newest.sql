-- Whoever asks for a reading of transactions without an event means what is new now, though the job goes on with a pass over
-- the history that is older (I1). Replaces functions of 20260504, 20260507 and 20260512.

-- A pass over a history that is under way counts as older than all: its last page begins another one (I1).
create function public.snaptrade_read_newest_again(p_work_type text, p_account_id text) returns void
language sql security invoker set search_path = '' as $$
  update public.snaptrade_accounts
  set transactions_cursor = transactions_cursor || jsonb_build_object('beganAt', '-infinity'::timestamptz)
  where p_work_type = 'transactions' and account_id = p_account_id and (transactions_cursor ->> 'pages')::integer > 0;
$$;

-- Returns {jobId, isNew, dueInMs, publish}: publish is the message to send now, or null (coalesced, or trailing).
--   p_options: spacingMs; jobId, an id chosen by the caller together with its slot (bulk work);
--   pull: "none"; "event", an event shortens a failure's delay, at most once for each failed attempt and no sooner than
--   5 min after it (1 h after a 400, 401 or 403); "at_once", CONNECTION_FIXED.
create or replace function public.snaptrade_accept_key(p_work_type text, p_account_id text, p_reason text, p_options jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_running boolean;
  v_due timestamptz;
  v_publish jsonb;
  v_now timestamptz;
begin
  perform public.snaptrade_lock_key(p_work_type, p_account_id);
  v_now := clock_timestamp();
  v_running := exists (select from public.snaptrade_sync_jobs
    where work_type = p_work_type and account_id = p_account_id and status = 'running');
  select * into v_job from public.snaptrade_sync_jobs
  where work_type = p_work_type and account_id = p_account_id and status = 'queued' for update;

  if v_job.id is not null then
    if p_options ->> 'pull' in ('event', 'at_once') and not v_running
      and v_job.failed_at is not null and v_job.due_at > v_now + interval '1 minute' then
      v_due := case when p_options ->> 'pull' = 'at_once' then v_now else greatest(v_now, v_job.failed_at
        + case when v_job.failed_status in (400, 401, 403) then interval '1 hour' else interval '5 minutes' end) end;
      if v_due < v_job.due_at
        and (p_options ->> 'pull' = 'at_once' or v_job.pulled_attempt is distinct from v_job.attempts) then
        update public.snaptrade_sync_jobs set due_at = v_due, pulled_attempt = attempts where id = v_job.id
        returning * into v_job;
        v_publish := public.snaptrade_hand_out_delivery(v_job.id);
      end if;
    end if;
    -- Who asks without an event has no row that the last page of a pass under way would find.
    if p_options ->> 'pull' = 'none' then
      perform public.snaptrade_read_newest_again(p_work_type, p_account_id);
    end if;
    return jsonb_build_object('jobId', v_job.id, 'isNew', false, 'dueInMs', public.snaptrade_ms_until(v_job.due_at),
      'publish', v_publish);
  end if;

  select greatest(v_now, case p_work_type when 'holdings' then a.holdings_attempted_at else a.transactions_attempted_at end
    + make_interval(secs => (p_options ->> 'spacingMs')::numeric / 1000)) into v_due
  from public.snaptrade_accounts a where a.account_id = p_account_id;
  insert into public.snaptrade_sync_jobs (id, work_type, account_id, reason, due_at, created_at)
  values (coalesce((p_options ->> 'jobId')::uuid, gen_random_uuid()), p_work_type, p_account_id, p_reason, v_due, v_now)
  returning * into v_job;
  if not v_running then
    v_publish := public.snaptrade_hand_out_delivery(v_job.id);
  end if;
  return jsonb_build_object('jobId', v_job.id, 'isNew', true, 'dueInMs', public.snaptrade_ms_until(v_job.due_at),
    'publish', v_publish);
end $$;

-- commit of one page of transactions: {jobId, workType, accountId, fence, rows, cursor (of the next page, or null after
--   the last), again (the cursor of another pass, or null), watermark (date, with the last page; null: there was no history
--   to read yet), pages (of the whole pass), pagesLeft, parts} -> {outcome: 'page' | 'done', ...}.
-- Each page stands under the fence; only the last one moves the watermark. The cursor carries the seam that the writer of
-- rows wants back with the next page, and when its pass began. A job that was put back in the middle of a pass goes on
-- covering new events: where one is younger than the pass, its last page begins another pass and not the end (I1). So does
-- a job that is itself younger than the pass that it found: whoever asked for it means what is new now.
create or replace function public.snaptrade_commit_transactions(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_written jsonb;
  v_stored jsonb;
  v_cursor jsonb := nullif(request -> 'cursor', 'null');
  v_began timestamptz;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  if public.snaptrade_account_is_gone(v_job.account_id) then
    perform public.snaptrade_close_key(v_job.work_type, v_job.account_id);
    return jsonb_build_object('outcome', 'gone');
  end if;
  perform public.snaptrade_write_parts(v_job, request -> 'parts');
  select a.transactions_cursor into v_stored from public.snaptrade_accounts a where a.account_id = v_job.account_id;
  v_written := public.snaptrade_write_transactions(v_job.account_id, request -> 'rows', v_stored -> 'seam', v_cursor);
  v_began := coalesce((v_stored ->> 'beganAt')::timestamptz, v_job.started_at);
  if v_cursor is not null then
    v_cursor := v_cursor || jsonb_build_object('seam', v_written -> 'seam', 'beganAt', v_began);
  elsif jsonb_typeof(request -> 'again') = 'object' and (v_job.created_at >= v_began or exists (select from (
    -- offset 0: first the events of this job. Statistics of a quiet hour promise few events that are younger, and the
    -- planner would go through all that a storm has brought.
    select e.received_at from public.snaptrade_webhook_events e
    where e.finished_at is null and e.job_ids @> array[v_job.id] offset 0) covered where covered.received_at >= v_began)) then
    v_cursor := request -> 'again';
  end if;
  if v_cursor is not null then
    update public.snaptrade_accounts set transactions_fence = v_job.fence, transactions_cursor = v_cursor,
      transactions_pages = greatest(1, (request ->> 'pagesLeft')::integer)
    where account_id = v_job.account_id;
    return jsonb_build_object('outcome', 'page', 'written', v_written);
  end if;
  -- The slot of the next run is the page count of this one; the first reading of a history says nothing about the next.
  update public.snaptrade_accounts set transactions_cursor = null, transactions_fence = v_job.fence,
    transactions_pages = case when transactions_watermark is null then 1 else greatest(1, (request ->> 'pages')::integer) end,
    transactions_watermark = coalesce((request ->> 'watermark')::date, transactions_watermark), transactions_synced_at = v_job.started_at
  where account_id = v_job.account_id;
  return jsonb_build_object('outcome', 'done', 'written', v_written, 'publish', public.snaptrade_finish_job(v_job));
end $$;

-- dead -> queued with fresh attempts, or superseded where a queued job of the key stands already.
--   {items: [{jobId, workType, accountId}]} -> {publish: [...], superseded: [jobId], notDead: [jobId]}
create or replace function public.snaptrade_replay_jobs(request jsonb) returns jsonb
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
    -- Its death finished its events: nothing else tells the last page what came while it lived.
    perform public.snaptrade_read_newest_again(v_job.work_type, v_job.account_id);
    if not exists (select from public.snaptrade_sync_jobs where work_type = v_job.work_type
      and account_id = v_job.account_id and status = 'running') then
      v_publish := v_publish || public.snaptrade_hand_out_delivery(v_job.id);
    end if;
  end loop;
  return jsonb_build_object('publish', v_publish, 'superseded', v_superseded, 'notDead', v_not_dead);
end $$;
