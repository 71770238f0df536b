-- What contestants without this service's protocol keep in Postgres: an event row, a job row, and the same writing of what
-- was read. One call each, as the service's own functions.

create table public.bench_events (webhook_id text primary key, payload text not null);
create table public.bench_jobs (
  id uuid primary key default gen_random_uuid(),
  work_type text not null,
  account_id text not null,
  status text not null default 'queued',
  created_at timestamptz not null default clock_timestamp()
);
grant select, insert, update, delete on public.bench_events, public.bench_jobs to service_role;

-- {webhookId, payload, accountId, workTypes} -> {isNew, jobs: [{jobId, workType, accountId}]}
create function public.bench_take_event(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_jobs jsonb;
begin
  insert into public.bench_events (webhook_id, payload) values (request ->> 'webhookId', request ->> 'payload')
  on conflict do nothing;
  if not found then
    return jsonb_build_object('isNew', false, 'jobs', '[]'::jsonb);
  end if;
  with made as (
    insert into public.bench_jobs (work_type, account_id)
    select w, request ->> 'accountId' from jsonb_array_elements_text(request -> 'workTypes') w
    returning id, work_type, account_id
  )
  select coalesce(jsonb_agg(jsonb_build_object('jobId', id, 'workType', work_type, 'accountId', account_id)), '[]')
  into v_jobs from made;
  return jsonb_build_object('isNew', true, 'jobs', v_jobs);
end $$;

-- {accountIds} -> {jobs: [{jobId, workType, accountId}]}, one for the holdings of each
create function public.bench_make_jobs(request jsonb) returns jsonb
language sql security invoker set search_path = '' as $$
  with made as (
    insert into public.bench_jobs (work_type, account_id)
    select 'holdings', a from jsonb_array_elements_text(request -> 'accountIds') a
    returning id, work_type, account_id
  )
  select jsonb_build_object('jobs', coalesce(jsonb_agg(
    jsonb_build_object('jobId', id, 'workType', work_type, 'accountId', account_id)), '[]')) from made
$$;

-- {jobId, workType, accountId} -> what a run must know of its account, or null where there is none
create function public.bench_begin(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
begin
  update public.bench_jobs set status = 'running' where id = (request ->> 'jobId')::uuid and status <> 'done';
  return (select jsonb_build_object('userId', a.user_id, 'secretCiphertext', u.secret_ciphertext,
      'watermark', a.transactions_watermark, 'today', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD'),
      'storedBalances', exists (select from public.snaptrade_balances b where b.account_id = a.account_id),
      'storedPositions', exists (select from public.snaptrade_positions p where p.account_id = a.account_id),
      'storedOrders', exists (select from public.snaptrade_orders o where o.account_id = a.account_id))
    from public.snaptrade_accounts a join public.snaptrade_users u using (user_id)
    where a.account_id = request ->> 'accountId');
end $$;

-- {jobId, accountId, holdings?, rows?, watermark?, done} -> {}
create function public.bench_store(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_account_id text := request ->> 'accountId';
begin
  if jsonb_typeof(request -> 'holdings') = 'object' then
    perform public.snaptrade_write_holdings(v_account_id, request -> 'holdings');
    update public.snaptrade_accounts set holdings_synced_at = clock_timestamp() where account_id = v_account_id;
  end if;
  if jsonb_typeof(request -> 'rows') = 'array' then
    perform public.snaptrade_write_transactions(v_account_id, request -> 'rows', null, null);
    update public.snaptrade_accounts set transactions_synced_at = clock_timestamp(),
      transactions_watermark = (request ->> 'watermark')::date where account_id = v_account_id;
  end if;
  if (request ->> 'done')::boolean then
    update public.bench_jobs set status = 'done' where id = (request ->> 'jobId')::uuid;
  end if;
  return '{}'::jsonb;
end $$;

revoke all on function public.bench_take_event(jsonb), public.bench_make_jobs(jsonb), public.bench_begin(jsonb), public.bench_store(jsonb) from public;
grant execute on function public.bench_take_event(jsonb), public.bench_make_jobs(jsonb), public.bench_begin(jsonb), public.bench_store(jsonb) to service_role;
