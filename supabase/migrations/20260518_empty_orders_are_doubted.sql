-- begin tells whether orders are stored: empty ones are then doubted as balances and positions are (I7). Replaces 20260506's.

-- begin: {jobId, workType, accountId, delivery, messageId, leaseMs, maxAttempts}
-- -> {outcome: 'begun', fence, attempts, tookOver, userId, secretCiphertext, readsAccount, calls, storedBalances,
--     storedPositions, storedOrders, failedParts, watermark, cursor, today}
--  | {outcome: 'overtaken' | 'already_active' | 'gone' | 'unknown'}
--  | {outcome: 'dead', publish}: the ended lease was the last attempt
create or replace function public.snaptrade_begin_job(request jsonb) returns jsonb
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
    'storedOrders', v_type = 'holdings'
      and exists (select from public.snaptrade_orders o where o.account_id = v_account_id),
    'failedParts', to_jsonb(v_account.failed_parts), 'watermark', v_account.transactions_watermark,
    'cursor', v_account.transactions_cursor - 'seam' - 'beganAt',
    'today', to_char(v_now at time zone 'UTC', 'YYYY-MM-DD'));
end $$;
