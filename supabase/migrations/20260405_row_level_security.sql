-- Who may read. The service role writes and passes row-level security; a signed-in user reads the accounts, positions,
-- balances, orders and transactions that are his, and nothing else; anon reads nothing (I10: no key of the browser
-- reaches a secret, an event or a job).

do $$
declare
  v_table regclass;
begin
  for v_table in
    select c.oid from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname like 'snaptrade\_%'
  loop
    execute format('alter table %s enable row level security', v_table);
  end loop;
end $$;

-- The one function with its owner's rights, in a schema that the API does not expose. Asked with the reader's rights
-- the same question would need a grant and a policy on snaptrade_users, where the encrypted secrets are. It takes no
-- argument and answers only about the caller. A deleted user reads nothing; a removed account stays readable, because
-- its history does (removed_at tells them apart).
create schema snaptrade_private;
revoke all on schema snaptrade_private from public;
grant usage on schema snaptrade_private to authenticated;

create function snaptrade_private.own_account_ids() returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce(array_agg(a.account_id), '{}')
  from public.snaptrade_users u
  join public.snaptrade_accounts a on a.user_id = u.user_id
  where u.auth_user_id = (select auth.uid()) and u.deleted_at is null;
$$;
revoke all on function snaptrade_private.own_account_ids() from public, anon, authenticated, service_role;
grant execute on function snaptrade_private.own_account_ids() to authenticated;

-- Whole rows, so that select('*') works: what accounts hold besides (fences, cursors, times) is the reader's own and
-- tells no secret. The sub-select makes it one call a query, and "= any" lets each table use its index by account.
grant select on public.snaptrade_accounts, public.snaptrade_positions, public.snaptrade_balances, public.snaptrade_orders,
  public.snaptrade_transactions to authenticated;

create policy "own accounts" on public.snaptrade_accounts for select to authenticated
  using (account_id = any ((select snaptrade_private.own_account_ids())::text[]));
create policy "positions of own accounts" on public.snaptrade_positions for select to authenticated
  using (account_id = any ((select snaptrade_private.own_account_ids())::text[]));
create policy "balances of own accounts" on public.snaptrade_balances for select to authenticated
  using (account_id = any ((select snaptrade_private.own_account_ids())::text[]));
create policy "orders of own accounts" on public.snaptrade_orders for select to authenticated
  using (account_id = any ((select snaptrade_private.own_account_ids())::text[]));
create policy "transactions of own accounts" on public.snaptrade_transactions for select to authenticated
  using (account_id = any ((select snaptrade_private.own_account_ids())::text[]));
