-- One key accepts one promise to read: the queued slot is taken, or found taken.

-- Returns {jobId, isNew, dueInMs, publish}: publish is the message to send now, or null (coalesced, or trailing).
--   p_options: spacingMs; jobId, an id chosen by the caller together with its slot (bulk work);
--   pull: "none"; "event", an event shortens a failure's delay, at most once for each failed attempt and no sooner than
--   5 min after it (1 h after a 400, 401 or 403); "at_once", CONNECTION_FIXED.
create function public.snaptrade_accept_key(p_work_type text, p_account_id text, p_reason text, p_options jsonb) returns jsonb
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

-- Bulk work (sweep, reconcile, manual): the same acceptance for many keys, each in a block of its own, so that one bad
-- account does not stop a page. The keys are locked in sorted order.
--   {reason, spacingMs, items: [{jobId, workType, accountId}]} -> {publish: [...], notNew: [jobId], failed: [{jobId, accountId, error}]}
create function public.snaptrade_accept_jobs(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_item jsonb;
  v_answer jsonb;
  v_publish jsonb := '[]';
  v_not_new jsonb := '[]';
  v_failed jsonb := '[]';
begin
  for v_item in select i from jsonb_array_elements(request -> 'items') i order by i ->> 'workType', i ->> 'accountId'
  loop
    begin
      v_answer := public.snaptrade_accept_key(v_item ->> 'workType', v_item ->> 'accountId', request ->> 'reason',
        jsonb_build_object('pull', 'none', 'spacingMs', request -> 'spacingMs', 'jobId', v_item -> 'jobId'));
      if v_answer -> 'publish' <> 'null' then
        v_publish := v_publish || (v_answer -> 'publish');
      else
        v_not_new := v_not_new || (v_item -> 'jobId');
      end if;
    exception when others then
      if sqlstate like '57%' or sqlstate like '40%' or sqlstate like '53%' then
        raise; -- a cancelled or starved transaction is no fault of the account
      end if;
      v_failed := v_failed || jsonb_build_object('jobId', v_item -> 'jobId', 'accountId', v_item -> 'accountId', 'error', sqlerrm);
    end;
  end loop;
  return jsonb_build_object('publish', v_publish, 'notNew', v_not_new, 'failed', v_failed);
end $$;
