-- The stale sweep: one at a time, page by page, by keyset, least recently attempted first.

create index snaptrade_accounts_holdings_sweep on public.snaptrade_accounts
  (coalesce(holdings_attempted_at, '-infinity'::timestamptz), account_id) where removed_at is null;
create index snaptrade_accounts_transactions_sweep on public.snaptrade_accounts
  (coalesce(transactions_attempted_at, '-infinity'::timestamptz), account_id) where removed_at is null;

-- {sweepId, guardMs} -> {started}. A sweep whose pages have stopped coming is taken over after guardMs.
create function public.snaptrade_start_sweep(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
begin
  insert into public.snaptrade_service_state as s (name, value, at)
  values ('sweep', jsonb_build_object('sweepId', request ->> 'sweepId'), clock_timestamp())
  on conflict (name) do update set value = excluded.value, at = excluded.at
  where s.value ->> 'sweepId' is null
    or s.at < clock_timestamp() - make_interval(secs => (request ->> 'guardMs')::numeric / 1000);
  return jsonb_build_object('started', found);
end $$;

-- One work type's stale keys behind a cursor. Not disabled, not removed, no dead job, no open job of that key.
-- enable_sort off leaves the order to the indexes above: a planner that expects less than a page of stale keys would collect
-- all of them, with their look-ups, and sort, for every page of the sweep anew. What stays stale for good (a disabled
-- connection, a deleted user, a dead job) only grows, and every sweep passes all of it: there plain look-ups decide before
-- the functions, which cost ten times as much ("offset 0" keeps each of them one look-up).
create function public.snaptrade_stale_keys(p_work_type text, p_cutoff timestamptz, p_cursor jsonb, p_limit integer)
returns table (attempted timestamptz, account_id text)
language plpgsql stable security invoker set search_path = '' set enable_sort = off as $$
declare
  v_after timestamptz := coalesce((p_cursor ->> 'attempted')::timestamptz, '-infinity');
  v_account text := coalesce(p_cursor ->> 'accountId', '');
begin
  if p_work_type = 'holdings' then
    return query select coalesce(a.holdings_attempted_at, '-infinity'::timestamptz), a.account_id
    from public.snaptrade_accounts a
    where a.removed_at is null and (coalesce(a.holdings_attempted_at, '-infinity'::timestamptz), a.account_id) > (v_after, v_account)
      and (a.holdings_synced_at is null or a.holdings_synced_at < p_cutoff)
      and (a.holdings_retry_at is null or a.holdings_retry_at < clock_timestamp())
      and case
        when exists (select from public.snaptrade_connections c where c.connection_id = a.connection_id
            and (c.disabled or c.removed_at is not null) offset 0)
          or exists (select from public.snaptrade_users u where u.user_id = a.user_id and u.deleted_at is not null offset 0)
          or exists (select from public.snaptrade_sync_jobs j where j.work_type = 'holdings'
            and j.account_id = a.account_id and j.status = 'dead' offset 0)
        then false
        else public.snaptrade_is_idle('holdings', a.account_id) and not public.snaptrade_account_is_gone(a.account_id) end
    order by coalesce(a.holdings_attempted_at, '-infinity'::timestamptz), a.account_id limit p_limit;
  else
    return query select coalesce(a.transactions_attempted_at, '-infinity'::timestamptz), a.account_id
    from public.snaptrade_accounts a
    where a.removed_at is null and (coalesce(a.transactions_attempted_at, '-infinity'::timestamptz), a.account_id) > (v_after, v_account)
      and (a.transactions_synced_at is null or a.transactions_synced_at < p_cutoff)
      and case
        when exists (select from public.snaptrade_connections c where c.connection_id = a.connection_id
            and (c.disabled or c.removed_at is not null) offset 0)
          or exists (select from public.snaptrade_users u where u.user_id = a.user_id and u.deleted_at is not null offset 0)
          or exists (select from public.snaptrade_sync_jobs j where j.work_type = 'transactions'
            and j.account_id = a.account_id and j.status = 'dead' offset 0)
        then false
        else public.snaptrade_is_idle('transactions', a.account_id) and not public.snaptrade_account_is_gone(a.account_id) end
    order by coalesce(a.transactions_attempted_at, '-infinity'::timestamptz), a.account_id limit p_limit;
  end if;
end $$;

-- {sweepId, cursor: {workType, attempted, accountId} | null, limit, staleMs: {holdings, transactions}}
-- -> {current: false} for a page of a sweep that was replaced, else {current: true, keys: [{workType, accountId, calls,
--    attempted}]}. Holdings first, then transactions; an empty page ends the sweep.
create function public.snaptrade_list_stale(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_limit integer := (request ->> 'limit')::integer;
  v_type text;
  v_keys jsonb := '[]';
begin
  update public.snaptrade_service_state set at = clock_timestamp()
  where name = 'sweep' and value ->> 'sweepId' = request ->> 'sweepId';
  if not found then
    return jsonb_build_object('current', false);
  end if;
  foreach v_type in array array['holdings', 'transactions'] loop
    continue when v_type < (request #>> '{cursor,workType}') or jsonb_array_length(v_keys) >= v_limit;
    v_keys := v_keys || coalesce((
      select jsonb_agg(jsonb_build_object('workType', v_type, 'accountId', k.account_id, 'attempted', k.attempted,
        'calls', public.snaptrade_calls(v_type, k.account_id)) order by k.attempted, k.account_id)
      from public.snaptrade_stale_keys(v_type,
        clock_timestamp() - make_interval(secs => (request -> 'staleMs' ->> v_type)::numeric / 1000),
        case when v_type = request #>> '{cursor,workType}' then request -> 'cursor' end,
        v_limit - jsonb_array_length(v_keys)) k), '[]');
  end loop;
  if v_keys = '[]' then
    update public.snaptrade_service_state set value = '{}' where name = 'sweep';
  end if;
  return jsonb_build_object('current', true, 'keys', v_keys);
end $$;

-- Ends a sweep whose next page could not be published, so that the next cron call starts anew. {sweepId} -> {}
create function public.snaptrade_end_sweep(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
begin
  update public.snaptrade_service_state set value = '{}', at = clock_timestamp()
  where name = 'sweep' and value ->> 'sweepId' = request ->> 'sweepId';
  return '{}';
end $$;
