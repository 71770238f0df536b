-- Users come in by an operator; their connections and accounts come from SnapTrade's own lists.

-- {userId, authUserId?, secretCiphertext} -> {created}. A user who was deleted and comes back starts anew.
create function public.snaptrade_put_user(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_created boolean;
begin
  insert into public.snaptrade_users as u (user_id, auth_user_id, secret_ciphertext)
  values (request ->> 'userId', (request ->> 'authUserId')::uuid, request ->> 'secretCiphertext')
  on conflict (user_id) do update set secret_ciphertext = excluded.secret_ciphertext,
    auth_user_id = coalesce(excluded.auth_user_id, u.auth_user_id),
    created_at = case when u.deleted_at is null then u.created_at else clock_timestamp() end, deleted_at = null
  returning xmax = 0 into v_created;
  return jsonb_build_object('created', v_created);
end $$;

-- An operator takes a user out: the secret goes at once, jobs close as gone when they are delivered. {userId} -> {removed}
create function public.snaptrade_remove_user(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
begin
  update public.snaptrade_users set deleted_at = clock_timestamp(), secret_ciphertext = null
  where user_id = request ->> 'userId' and deleted_at is null;
  return jsonb_build_object('removed', found);
end $$;

create index snaptrade_users_comparison on public.snaptrade_users (coalesce(compared_at, '-infinity'::timestamptz))
  where deleted_at is null and secret_ciphertext is not null;

-- Users whose lists should be read now. At most one whole listing a user a day: those with waiting events first, then the
-- daily comparison, spread over the day. {limit} -> {users: [{userId, secretCiphertext}]}
-- Asked each minute, so neither the users nor those that are not due are gone through: how many there are is Postgres's own
-- estimate, and the comparison's time is a stable one (a volatile function would keep the index from being used).
create function public.snaptrade_users_to_list(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' set enable_seqscan = off as $$
  select jsonb_build_object('users', coalesce(jsonb_agg(jsonb_build_object('userId', d.user_id,
    'secretCiphertext', d.secret_ciphertext) order by d.rank, d.at nulls first), '[]'))
  from (select distinct on (due.user_id) due.* from (
    (select u.user_id, u.secret_ciphertext, 0 as rank, u.listed_at as at from public.snaptrade_users u
      where u.deleted_at is null and u.secret_ciphertext is not null
        and (u.listed_at is null or u.listed_at < clock_timestamp() - interval '24 hours')
        and u.user_id in (select w.user_id from public.snaptrade_webhook_events w
          where w.outcome = 'waiting' and w.finished_at is null
            -- What the next release takes needs no listing, also while that release is under way.
            and case when w.account_id is null
              then not exists (select from public.snaptrade_accounts a
                where a.connection_id = w.connection_id and a.removed_at is null)
              else exists (select from public.snaptrade_connections c
                where c.connection_id = w.connection_id and c.user_id <> w.user_id) end)
      limit (request ->> 'limit')::integer)
    union all
    (select u.user_id, u.secret_ciphertext, 1, u.compared_at from public.snaptrade_users u
      where u.deleted_at is null and u.secret_ciphertext is not null
        and coalesce(u.compared_at, '-infinity'::timestamptz) < now() - interval '24 hours'
        and u.created_at < now() - interval '1 hour'
      order by coalesce(u.compared_at, '-infinity'::timestamptz)
      limit least((request ->> 'limit')::integer, (select ceil(greatest(c.reltuples, 1) / 1440) + 1
        from pg_catalog.pg_class c where c.oid = 'public.snaptrade_users'::regclass)::integer))) due
    order by due.user_id, due.rank) d;
$$;

-- A listing is done when the jobs of what it found are accepted, not before: one that breaks off in between is made again.
-- An attempt that failed counts too: the provider is not asked again the same day for the same user. {userId} -> {}
create function public.snaptrade_mark_listed(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
begin
  update public.snaptrade_users set listed_at = clock_timestamp(), compared_at = clock_timestamp()
  where user_id = request ->> 'userId';
  return '{}';
end $$;

-- Stores a complete listing and compares it with our watermarks. Nothing is ever removed by a listing (I7), and it never
-- undoes an event that is newer than its reading.
--   {userId, readAt (when the reading began), connections: [...], accounts: [...] (lib/provider/provider.ts)}
-- -> {behind: [{workType, accountId, calls}]}:
-- keys whose upstream data moved on while no webhook came. Lost webhooks are normal: SnapTrade re-sends three times.
create function public.snaptrade_put_listing(request jsonb) returns jsonb
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
    -- A holdings sync upstream that is newer than the reported failure has made the failed parts good.
    failed_parts = case when a.failed_parts_at < (select (w ->> 'holdingsLastSuccessfulSync')::timestamptz
      from jsonb_array_elements(request -> 'accounts') w where w ->> 'accountId' = a.account_id) then '{}' else a.failed_parts end
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
