-- queued -> running, and the takeover of a run past its lease. The lease alone decides whether another run lives (I3):
-- a Redis lock may be lost or late, this row may not.

-- begin: {jobId, workType, accountId, delivery, messageId, leaseMs, maxAttempts}
-- -> {outcome: 'begun', fence, attempts, tookOver, userId, secretCiphertext, readsAccount, calls, storedBalances,
--     storedPositions, failedParts, watermark, cursor, today}
--  | {outcome: 'overtaken' | 'already_active' | 'gone' | 'unknown'}
--  | {outcome: 'dead', publish}: the ended lease was the last attempt
create function public.snaptrade_begin_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_type text := request ->> 'workType';
  v_account_id text := request ->> 'accountId';
  v_job public.snaptrade_sync_jobs;
  v_other public.snaptrade_sync_jobs;
  v_account public.snaptrade_accounts;
  v_now timestamptz;
  v_reads_account boolean;
begin
  perform public.snaptrade_lock_key(v_type, v_account_id);
  v_now := clock_timestamp();
  select * into v_job from public.snaptrade_sync_jobs where id = (request ->> 'jobId')::uuid for update;
  if v_job.id is null or v_job.work_type <> v_type or v_job.account_id <> v_account_id then
    return jsonb_build_object('outcome', 'unknown');
  end if;
  if v_job.status not in ('queued', 'running') or v_job.delivery <> (request ->> 'delivery')::integer then
    return jsonb_build_object('outcome', 'overtaken');
  end if;
  if public.snaptrade_account_is_gone(v_account_id) then
    if v_job.status = 'running' and v_job.lease_until > v_now then
      return jsonb_build_object('outcome', 'already_active');
    end if;
    perform public.snaptrade_close_key(v_type, v_account_id);
    return jsonb_build_object('outcome', 'gone');
  end if;

  select * into v_other from public.snaptrade_sync_jobs
  where work_type = v_type and account_id = v_account_id and status = 'running' for update;
  if v_other.lease_until > v_now then
    return jsonb_build_object('outcome', 'already_active');
  end if;
  if v_other.id is not null and v_other.id <> v_job.id then
    perform public.snaptrade_supersede(v_other.id, v_job.id, v_other.attempts);
    select * into v_job from public.snaptrade_sync_jobs where id = v_job.id;
  end if;
  if v_other.id is not null and v_job.attempts >= (request ->> 'maxAttempts')::integer then
    return jsonb_build_object('outcome', 'dead',
      'publish', public.snaptrade_bury(v_job.id, 'the last attempt did not end within its lease'));
  end if;

  v_reads_account := public.snaptrade_reads_account(v_type, v_account_id);
  update public.snaptrade_sync_jobs
  set status = 'running', attempts = attempts + 1, fence = nextval('public.snaptrade_fence'), started_at = v_now,
    lease_until = v_now + make_interval(secs => (request ->> 'leaseMs')::numeric / 1000),
    message_id = request ->> 'messageId', republished = 0
  where id = v_job.id returning * into v_job;
  -- Spacing counts from here; a continuation or a takeover is the same run going on.
  update public.snaptrade_accounts set
    holdings_attempted_at = case when v_type = 'holdings' then v_now else holdings_attempted_at end,
    transactions_attempted_at = case when v_type = 'transactions' then v_now else transactions_attempted_at end
  where account_id = v_account_id returning * into v_account;
  return jsonb_build_object(
    'outcome', 'begun', 'fence', v_job.fence, 'attempts', v_job.attempts, 'tookOver', v_other.id is not null,
    'userId', v_account.user_id,
    'secretCiphertext', (select u.secret_ciphertext from public.snaptrade_users u where u.user_id = v_account.user_id),
    'readsAccount', v_reads_account, 'calls', public.snaptrade_calls(v_type, v_account_id),
    'storedBalances', v_type = 'holdings'
      and exists (select from public.snaptrade_balances b where b.account_id = v_account_id),
    'storedPositions', v_type = 'holdings'
      and exists (select from public.snaptrade_positions p where p.account_id = v_account_id),
    'failedParts', to_jsonb(v_account.failed_parts), 'watermark', v_account.transactions_watermark,
    'cursor', v_account.transactions_cursor - 'seam' - 'beganAt',
    'today', to_char(v_now at time zone 'UTC', 'YYYY-MM-DD'));
end $$;

-- The running job of this fence, its row locked, or nothing: a run that was overtaken writes nothing (I4).
create function public.snaptrade_hold_fence(request jsonb) returns setof public.snaptrade_sync_jobs
language plpgsql security invoker set search_path = '' as $$
begin
  perform public.snaptrade_lock_key(request ->> 'workType', request ->> 'accountId');
  return query select * from public.snaptrade_sync_jobs
  where id = (request ->> 'jobId')::uuid and work_type = request ->> 'workType' and account_id = request ->> 'accountId'
    and status = 'running' and fence = (request ->> 'fence')::bigint for update;
end $$;

-- What a run has read so far goes in with its fence: with the commit, and with defer and fail, which take the good parts
-- along. {account?, rereadAccount?, holdings?: {...snaptrade_write_holdings}} -> complete: all parts are good.
-- An account that was removed while it was read is not written; its job closes when it is delivered next.
--   rereadAccount: the next run's slot holds a call for the account, whose flags tell an empty account from a broken one.
create function public.snaptrade_write_parts(p_job public.snaptrade_sync_jobs, p_parts jsonb) returns boolean
language plpgsql security invoker set search_path = '' as $$
declare
  v_account jsonb := p_parts -> 'account';
  v_written jsonb;
begin
  if public.snaptrade_account_is_gone(p_job.account_id) then
    return false;
  end if;
  if jsonb_typeof(v_account) = 'object' then
    update public.snaptrade_accounts set name = v_account ->> 'name', currency = coalesce(v_account ->> 'currency', currency),
      institution_account_id = coalesce(v_account ->> 'institutionAccountId', institution_account_id),
      connection_id = coalesce(connection_id, (select c.connection_id from public.snaptrade_connections c
        where c.connection_id = v_account ->> 'connectionId')),
      transactions_ready = (v_account ->> 'transactionsInitialSyncCompleted')::boolean, detail_read_at = p_job.started_at
    where account_id = p_job.account_id;
  end if;
  if p_parts -> 'rereadAccount' = 'true' then
    update public.snaptrade_accounts set detail_read_at = null where account_id = p_job.account_id;
  end if;
  if jsonb_typeof(p_parts -> 'holdings') is distinct from 'object' then
    return false;
  end if;
  v_written := public.snaptrade_write_holdings(p_job.account_id, p_parts -> 'holdings');
  update public.snaptrade_accounts set holdings_fence = p_job.fence where account_id = p_job.account_id;
  return (v_written ->> 'complete')::boolean;
end $$;

-- running -> done, with its events, and a dead job of the key that this success makes pointless.
-- Returns the trailing job to publish, or null.
create function public.snaptrade_finish_job(p_job public.snaptrade_sync_jobs) returns jsonb
language plpgsql security invoker set search_path = '' as $$
begin
  update public.snaptrade_sync_jobs
  set status = 'done', lease_until = null, finished_at = clock_timestamp(), attempts = attempts - 1, last_error = null
  where id = p_job.id;
  update public.snaptrade_sync_jobs set status = 'superseded'
  where work_type = p_job.work_type and account_id = p_job.account_id and status = 'dead';
  perform public.snaptrade_finish_events(p_job.id);
  return public.snaptrade_hand_out_trailing(p_job.work_type, p_job.account_id);
end $$;
