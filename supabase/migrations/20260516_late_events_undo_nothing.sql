-- What SnapTrade sends again late undoes nothing that came meanwhile; a 404 closes no account that was just announced.
-- Replaces functions of 20260505, 20260508 and 20260511.

-- State rows are guarded by eventTimestamp: an older event never undoes a newer one. Two events of one instant: the one
-- that keeps the data flowing wins, since a wrong "disabled" would be silent.
--   p_route: an account event that waits makes no account row: whose it is cannot be told yet.
create or replace function public.snaptrade_apply_event_state(p_event jsonb, p_route text) returns void
language plpgsql security invoker set search_path = '' as $$
declare
  v_at timestamptz := (p_event ->> 'eventTimestamp')::timestamptz;
  v_change text := p_event #>> '{effect,change}';
  v_user text := p_event ->> 'userId';
  v_connection text := p_event ->> 'connectionId';
  v_account text := p_event ->> 'accountId';
begin
  if v_connection is not null then
    insert into public.snaptrade_connections (connection_id, user_id)
    select v_connection, u.user_id from public.snaptrade_users u where u.user_id = v_user and u.deleted_at is null
    on conflict do nothing;
  end if;
  if p_event #>> '{effect,kind}' = 'account' and p_route = 'jobs' then
    insert into public.snaptrade_accounts (account_id, connection_id, user_id)
    select v_account, c.connection_id, coalesce(c.user_id, u.user_id)
    from (select 1) one
    left join public.snaptrade_users u on u.user_id = v_user and u.deleted_at is null
    left join public.snaptrade_connections c on c.connection_id = v_connection
    where coalesce(c.user_id, u.user_id) is not null
    on conflict do nothing;
  end if;
  case v_change
    when 'connection_enabled' then
      update public.snaptrade_connections set disabled = false, removed_at = null, state_at = v_at
      where connection_id = v_connection and (state_at is null or state_at <= v_at);
      update public.snaptrade_accounts a set removed_at = null
      where a.connection_id = v_connection and public.snaptrade_is_missing(a) and a.removed_at < v_at;
    when 'connection_disabled' then
      update public.snaptrade_connections set disabled = true, state_at = v_at
      where connection_id = v_connection and (state_at is null or state_at < v_at);
    when 'connection_removed' then
      update public.snaptrade_connections set removed_at = v_at, state_at = v_at
      where connection_id = v_connection and (state_at is null or state_at < v_at);
    when 'account_available' then
      update public.snaptrade_accounts set removed_at = null, state_at = v_at
      where account_id = v_account and (state_at is null or state_at <= v_at);
    when 'account_removed' then
      update public.snaptrade_accounts set removed_at = v_at, state_at = v_at
      where account_id = v_account and (state_at is null or state_at < v_at);
    when 'user_deleted' then
      update public.snaptrade_users set deleted_at = v_at, secret_ciphertext = null
      where user_id = v_user and deleted_at is null and created_at <= v_at;
    else null;
  end case;
  -- Also where nothing had failed and nothing has: an older event that comes later must not say so after this one.
  if jsonb_typeof(p_event -> 'failedParts') = 'array' then
    update public.snaptrade_accounts
    set failed_parts = array(select jsonb_array_elements_text(p_event -> 'failedParts')), failed_parts_at = v_at
    where account_id = v_account and (failed_parts_at is null or failed_parts_at <= v_at);
  end if;
end $$;

-- {userId, authUserId?, secretCiphertext} -> {created}. A user who comes back starts anew, also where nobody has told us
-- yet that it was deleted: a late USER_DELETED of before must not take the new secret.
create or replace function public.snaptrade_put_user(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_created boolean;
begin
  insert into public.snaptrade_users as u (user_id, auth_user_id, secret_ciphertext)
  values (request ->> 'userId', (request ->> 'authUserId')::uuid, request ->> 'secretCiphertext')
  on conflict (user_id) do update set secret_ciphertext = excluded.secret_ciphertext,
    auth_user_id = coalesce(excluded.auth_user_id, u.auth_user_id),
    created_at = clock_timestamp(), deleted_at = null
  returning xmax = 0 into v_created;
  return jsonb_build_object('created', v_created);
end $$;

-- When SnapTrade last read the holdings of this account in full, as the listing says; null where it does not, or
-- names a time that has not come: no failure until then would be believed.
create function public.snaptrade_listed_sync(p_listing jsonb, p_account_id text) returns timestamptz
language sql stable security invoker set search_path = '' as $$
  select max((w ->> 'holdingsLastSuccessfulSync')::timestamptz) from jsonb_array_elements(p_listing -> 'accounts') w
  where w ->> 'accountId' = p_account_id
    and (w ->> 'holdingsLastSuccessfulSync')::timestamptz <= clock_timestamp() + interval '10 minutes';
$$;

-- Stores a complete listing and compares it with our watermarks. Nothing is ever removed by a listing (I7), and it never
-- undoes an event that is newer than its reading.
--   {userId, readAt (when the reading began), connections: [...], accounts: [...] (lib/provider/provider.ts)}
-- -> {behind: [{workType, accountId, calls}]}:
-- keys whose upstream data moved on while no webhook came. Lost webhooks are normal: SnapTrade re-sends three times.
create or replace function public.snaptrade_put_listing(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_behind jsonb;
begin
  insert into public.snaptrade_connections as c (connection_id, user_id, brokerage, disabled)
  select distinct on (w ->> 'connectionId') w ->> 'connectionId', request ->> 'userId', w ->> 'brokerage', (w ->> 'disabled')::boolean
  from jsonb_array_elements(request -> 'connections') w order by w ->> 'connectionId'
  on conflict (connection_id) do update set brokerage = excluded.brokerage, disabled = excluded.disabled
  where c.user_id = excluded.user_id and c.removed_at is null
    and (c.state_at is null or c.state_at < (request ->> 'readAt')::timestamptz)
    and (c.brokerage, c.disabled) is distinct from (excluded.brokerage, excluded.disabled);
  insert into public.snaptrade_accounts as a (account_id, connection_id, user_id, institution_account_id, name, currency,
    transactions_ready, detail_read_at)
  select distinct on (w ->> 'accountId') w ->> 'accountId', (select c.connection_id from public.snaptrade_connections c where c.connection_id = w ->> 'connectionId'),
    request ->> 'userId', w ->> 'institutionAccountId', w ->> 'name', w ->> 'currency',
    (w ->> 'transactionsInitialSyncCompleted')::boolean, clock_timestamp()
  from jsonb_array_elements(request -> 'accounts') w order by w ->> 'accountId'
  on conflict (account_id) do update set name = excluded.name, currency = coalesce(excluded.currency, a.currency),
    institution_account_id = coalesce(excluded.institution_account_id, a.institution_account_id),
    connection_id = coalesce(a.connection_id, excluded.connection_id), detail_read_at = excluded.detail_read_at,
    transactions_ready = excluded.transactions_ready,
    removed_at = case when public.snaptrade_is_missing(a) and a.removed_at < (request ->> 'readAt')::timestamptz
      then null else a.removed_at end,
    -- A holdings sync upstream that is newer than the reported failure has made the failed parts good, and an event of
    -- before it that comes later says nothing any more.
    failed_parts = case when a.failed_parts_at < public.snaptrade_listed_sync(request, a.account_id) then '{}' else a.failed_parts end,
    failed_parts_at = greatest(a.failed_parts_at, public.snaptrade_listed_sync(request, a.account_id))
  where a.user_id = excluded.user_id;
  select jsonb_agg(jsonb_build_object('workType', b.work_type, 'accountId', b.account_id,
    'calls', public.snaptrade_calls(b.work_type, b.account_id))) into v_behind
  from (
    select t.work_type, a.account_id
    from jsonb_array_elements(request -> 'accounts') w
    join public.snaptrade_accounts a on a.account_id = w ->> 'accountId' and a.user_id = request ->> 'userId'
    -- What a run could not read in full comes back with the sweep: holdings at most four times a day without an event.
    cross join lateral (values
      ('holdings', ((w ->> 'holdingsLastSuccessfulSync')::timestamptz > a.holdings_synced_at or a.holdings_synced_at is null)
        and (a.holdings_retry_at is null or a.holdings_retry_at < clock_timestamp())),
      ('transactions', (w ->> 'transactionsLastSuccessfulSync')::date > a.transactions_watermark or a.transactions_watermark is null)
    ) as t (work_type, is_behind)
    where t.is_behind and public.snaptrade_is_idle(t.work_type, a.account_id)
      and not public.snaptrade_account_is_gone(a.account_id)) b;
  return jsonb_build_object('behind', coalesce(v_behind, '[]'));
end $$;

-- close: the provider no longer knows the account (404). Its queued jobs close too.
--   {..., fence} -> {outcome: 'gone' | 'fenced'} | {outcome: 'deferred', publish}: an event of the minute before the run's
--   begin, or of after it, says that the account is there. The run was too early, and a later one must say it again; the
--   event's age ends that, so it spends no attempt.
-- state_at stays: only an event says that an account was removed. What a 404 alone says, a later listing that shows the
-- account, or a repaired connection, takes back (snaptrade_is_missing).
create or replace function public.snaptrade_close_job(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  if exists (select from public.snaptrade_accounts a
    left join public.snaptrade_connections c on c.connection_id = a.connection_id and not c.disabled and c.removed_at is null
    where a.account_id = v_job.account_id and a.removed_at is null
      and greatest(a.state_at, c.state_at) > v_job.started_at - interval '1 minute') then
    update public.snaptrade_sync_jobs set last_error = 'SnapTrade answered 404 for an account that was just announced'
    where id = v_job.id;
    return jsonb_build_object('outcome', 'deferred', 'publish', public.snaptrade_hand_out_delivery(public.snaptrade_requeue(
      v_job.id, clock_timestamp() + interval '1 minute', false)));
  end if;
  update public.snaptrade_accounts set removed_at = coalesce(removed_at, v_job.started_at)
  where account_id = v_job.account_id;
  perform public.snaptrade_close_key(v_job.work_type, v_job.account_id);
  return jsonb_build_object('outcome', 'gone');
end $$;
