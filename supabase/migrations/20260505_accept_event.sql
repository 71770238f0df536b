-- Intake: one authentic event becomes durable, in one call (I1, I2).

-- A reading that was put back in the middle. Its job covers younger events only by their rows (the last page looks for
-- them), so none of them may be answered without one.
create function public.snaptrade_is_half_read(p_work_type text, p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select p_work_type = 'transactions' and exists (select from public.snaptrade_accounts a
    where a.account_id = p_account_id and (a.transactions_cursor ->> 'pages')::integer > 0);
$$;

-- Closed by a 404 alone, not by an event: what shows it again may bring it back.
create function public.snaptrade_is_missing(p_account public.snaptrade_accounts) returns boolean
language sql immutable security invoker set search_path = '' as $$
  select p_account.removed_at is not null and p_account.state_at is distinct from p_account.removed_at;
$$;

-- Which keys an event reaches, by reading alone: {route: 'jobs', keys}, 'waiting', 'ignored' or 'state'.
-- The account id alone routes an account event; a connection or user id that differs is reported, not obeyed.
create function public.snaptrade_route_event(p_event jsonb) returns jsonb
language plpgsql stable security invoker set search_path = '' as $$
declare
  v_kind text := p_event #>> '{effect,kind}';
  v_account public.snaptrade_accounts;
  v_connection public.snaptrade_connections;
  v_user_id text;
  v_accounts text[];
  v_differs boolean := false;
begin
  if v_kind = 'state' then
    return jsonb_build_object('route', 'state');
  end if;
  select * into v_connection from public.snaptrade_connections where connection_id = p_event ->> 'connectionId';
  if v_kind = 'account' then
    select * into v_account from public.snaptrade_accounts where account_id = p_event ->> 'accountId';
    if v_account.account_id is not null then
      v_differs := coalesce(v_account.connection_id <> p_event ->> 'connectionId', false)
        or coalesce(v_account.user_id <> p_event ->> 'userId', false);
      if exists (select from public.snaptrade_users u where u.user_id = v_account.user_id and u.deleted_at is not null)
        or (v_account.removed_at is not null and not (p_event #>> '{effect,change}' = 'account_available'
          and (p_event ->> 'eventTimestamp')::timestamptz > greatest(v_account.state_at, v_account.removed_at))) then
        return jsonb_build_object('route', 'ignored', 'differs', v_differs);
      end if;
    else
      select u.user_id into v_user_id from public.snaptrade_users u
      where u.user_id = coalesce(p_event ->> 'userId', v_connection.user_id) and u.deleted_at is null;
      if v_user_id is null or v_user_id <> v_connection.user_id then
        return jsonb_build_object('route', 'waiting', 'differs', v_user_id is not null);
      end if;
    end if;
    v_accounts := array[p_event ->> 'accountId'];
  else
    select array_agg(a.account_id) into v_accounts from public.snaptrade_accounts a
    join public.snaptrade_users u on u.user_id = a.user_id and u.deleted_at is null
    where a.connection_id = p_event ->> 'connectionId' and (a.removed_at is null
      or public.snaptrade_is_missing(a) and a.removed_at < (p_event ->> 'eventTimestamp')::timestamptz);
    if v_accounts is null then
      return jsonb_build_object('route', 'waiting');
    end if;
  end if;
  return jsonb_build_object('route', 'jobs', 'differs', coalesce(v_differs, false), 'keys', (
    select jsonb_agg(jsonb_build_object('workType', w, 'accountId', a) order by w, a)
    from unnest(v_accounts) a, jsonb_array_elements_text(p_event #> '{effect,workTypes}') w));
end $$;

-- State rows are guarded by eventTimestamp: an older event never undoes a newer one. Two events of one instant: the one
-- that keeps the data flowing wins, since a wrong "disabled" would be silent.
--   p_route: an account event that waits makes no account row: whose it is cannot be told yet.
create function public.snaptrade_apply_event_state(p_event jsonb, p_route text) returns void
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
  if jsonb_typeof(p_event -> 'failedParts') = 'array' then
    update public.snaptrade_accounts
    set failed_parts = array(select jsonb_array_elements_text(p_event -> 'failedParts')), failed_parts_at = v_at
    where account_id = v_account and (failed_parts_at is null or failed_parts_at <= v_at)
      and (failed_parts <> '{}' or p_event -> 'failedParts' <> '[]');
  end if;
end $$;

-- Routes one event and accepts its keys. The keys are locked in sorted order before any row is touched: the run's
-- functions take the same locks first and rows after.
-- Returns {outcome, jobIds, publish, queued: {jobId, dueInMs} | null, differs}. queued: the job of a single key that may
-- stand behind the queued key, because it has not begun to read.
create function public.snaptrade_take_event(p_event jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_route jsonb := public.snaptrade_route_event(p_event);
  v_key jsonb;
  v_answer jsonb;
  v_ids uuid[] := '{}';
  v_publish jsonb := '[]';
  v_new boolean := false;
begin
  for v_key in select k from jsonb_array_elements(v_route -> 'keys') k loop
    perform public.snaptrade_lock_key(v_key ->> 'workType', v_key ->> 'accountId');
  end loop;
  if v_route ->> 'route' <> 'ignored' then
    perform public.snaptrade_apply_event_state(p_event, v_route ->> 'route');
  end if;
  for v_key in select k from jsonb_array_elements(v_route -> 'keys') k loop
    v_answer := public.snaptrade_accept_key(v_key ->> 'workType', v_key ->> 'accountId', 'event', jsonb_build_object(
      'spacingMs', p_event -> 'spacingMs',
      'pull', case when p_event #>> '{effect,change}' = 'connection_enabled' then 'at_once' else 'event' end));
    v_ids := v_ids || (v_answer ->> 'jobId')::uuid;
    v_new := v_new or (v_answer ->> 'isNew')::boolean;
    if v_answer -> 'publish' <> 'null' then
      v_publish := v_publish || (v_answer -> 'publish');
    end if;
  end loop;
  return jsonb_build_object(
    'outcome', case v_route ->> 'route' when 'jobs' then case when v_new then 'accepted' else 'coalesced' end
      when 'state' then 'accepted' else v_route ->> 'route' end,
    'jobIds', to_jsonb(v_ids), 'publish', v_publish, 'differs', coalesce(v_route -> 'differs', 'false'),
    'queued', case when cardinality(v_ids) = 1
      and not public.snaptrade_is_half_read(v_route #>> '{keys,0,workType}', v_route #>> '{keys,0,accountId}')
      then jsonb_build_object('jobId', v_ids[1], 'dueInMs', v_answer -> 'dueInMs') end);
end $$;

-- accept: {webhookId, eventType, accountId, connectionId, userId, eventTimestamp, payload (JSON text), failedParts,
--   effect: {kind, change, workTypes}, unroutable (boolean), spacingMs}. Answers like snaptrade_take_event, with
-- outcome 'duplicate' for an id that has a row, processed or not (I2: the partial unique index stands behind it).
create function public.snaptrade_accept_event(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_row public.snaptrade_webhook_events;
  v_taken jsonb;
  v_outcome text;
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('snaptrade:webhook:' || (request ->> 'webhookId'), 0));
  select * into v_row from public.snaptrade_webhook_events where webhook_id = request ->> 'webhookId' order by id limit 1;
  if v_row.id is not null then
    return jsonb_build_object('outcome', 'duplicate', 'jobIds', to_jsonb(v_row.job_ids), 'publish', '[]'::jsonb,
      'differs', false, 'queued', (
        select case when j.status = 'queued' and not public.snaptrade_is_half_read(j.work_type, j.account_id)
          then jsonb_build_object('jobId', j.id, 'dueInMs', public.snaptrade_ms_until(j.due_at)) end
        from public.snaptrade_sync_jobs j where cardinality(v_row.job_ids) = 1 and j.id = v_row.job_ids[1]));
  end if;
  if (request ->> 'unroutable')::boolean then
    v_taken := jsonb_build_object('outcome', 'unroutable', 'jobIds', '[]'::jsonb, 'publish', '[]'::jsonb,
      'differs', false, 'queued', null);
  else
    v_taken := public.snaptrade_take_event(request);
  end if;
  v_outcome := v_taken ->> 'outcome';
  insert into public.snaptrade_webhook_events (webhook_id, event_type, account_id, connection_id, user_id, outcome,
    processed, job_ids, event_timestamp, received_at, finished_at, payload)
  values (request ->> 'webhookId', request ->> 'eventType', request ->> 'accountId', request ->> 'connectionId',
    request ->> 'userId', v_outcome, v_outcome = 'accepted',
    array(select jsonb_array_elements_text(v_taken -> 'jobIds'))::uuid[],
    (request ->> 'eventTimestamp')::timestamptz, clock_timestamp(),
    case when v_outcome in ('unroutable', 'ignored') or v_taken -> 'jobIds' = '[]' and v_outcome = 'accepted'
      then clock_timestamp() end,
    (request ->> 'payload')::json);
  return v_taken;
end $$;

-- Accepts events whose account or connection was unknown when they came and exists now; the rest keep waiting, and so do
-- those whose key somebody holds: the events are of many keys, in the order in which they came.
--   {userId?, limit, spacingMs, effects} -> {released, publish: [...]}
create function public.snaptrade_release_waiting(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_row record;
  v_taken jsonb;
  v_publish jsonb := '[]';
  v_released integer := 0;
begin
  for v_row in
    select e.id, w.event from public.snaptrade_webhook_events e
    cross join lateral (select jsonb_build_object('accountId', e.account_id, 'connectionId', e.connection_id,
      'userId', e.user_id, 'eventTimestamp', e.event_timestamp, 'spacingMs', request -> 'spacingMs',
      'effect', request #> array['effects', e.event_type]) as event) w
    where e.outcome = 'waiting' and e.finished_at is null
      and (request ->> 'userId' is null or e.user_id = request ->> 'userId')
      -- Only what the route lets through counts against the limit: what still waits must not hold up the rest. The
      -- cheap conditions come first, for the route costs a function call.
      and case
        when exists (select from public.snaptrade_accounts a where a.account_id = e.account_id)
          or e.account_id is null and exists (select from public.snaptrade_accounts a where a.connection_id = e.connection_id)
          or exists (select from public.snaptrade_users u where u.user_id = e.user_id and e.account_id is not null and u.deleted_at is null)
        then public.snaptrade_route_event(w.event) ->> 'route' <> 'waiting' end
    order by e.received_at limit (request ->> 'limit')::integer for update of e skip locked
  loop
    continue when exists (select from jsonb_array_elements(public.snaptrade_route_event(v_row.event) -> 'keys') k
      where not public.snaptrade_try_lock_key(k ->> 'workType', k ->> 'accountId'));
    v_taken := public.snaptrade_take_event(v_row.event);
    if v_taken ->> 'outcome' <> 'waiting' then
      update public.snaptrade_webhook_events set outcome = v_taken ->> 'outcome', processed = v_taken ->> 'outcome' = 'accepted',
        job_ids = array(select jsonb_array_elements_text(v_taken -> 'jobIds'))::uuid[],
        finished_at = case when v_taken -> 'jobIds' = '[]' then clock_timestamp() end
      where id = v_row.id;
      v_publish := v_publish || (v_taken -> 'publish');
      v_released := v_released + 1;
    end if;
  end loop;
  return jsonb_build_object('released', v_released, 'publish', v_publish);
end $$;
