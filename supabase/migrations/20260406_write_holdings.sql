-- How holdings are written. The callers (commit, defer, fail) hold the advisory lock of the key and have checked the fence
-- (I4); nothing here does. The rows arrive as the provider port's objects: the same names, numbers as text. What did not
-- change is neither written nor locked, and every stored column takes part in the comparison (one that is left out of it
-- would never be corrected).

-- The day of a date or time of the wire, or null if it cannot be read (I7: an odd date must not make an account unwritable).
create function public.snaptrade_day(p_text text) returns date
language plpgsql stable strict security invoker set search_path = '' as $$
begin
  return case when p_text ~ '^\d{4}-\d\d-\d\d([T ]|$)' then left(p_text, 10)::date end;
exception when datetime_field_overflow or invalid_datetime_format then
  return null;
end $$;

-- The moment of a time of the wire, or null if it cannot be read (I7, as above). Without an offset it is UTC.
create function public.snaptrade_moment(p_text text) returns timestamptz
language plpgsql stable strict security invoker set search_path = '' as $$
begin
  return case
    when p_text ~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?$' then (p_text || ' UTC')::timestamptz
    when p_text ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)? ?([Zz]|[+-]\d\d(:?\d\d)?)$' then p_text::timestamptz
  end;
exception when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
  return null;
end $$;

-- I7: only a list replaces a list. Without this a missing one would read as an empty one and wipe what is stored.
create function public.snaptrade_require_list(p_what text, p_value jsonb) returns void
language plpgsql immutable security invoker set search_path = '' as $$
begin
  if jsonb_typeof(p_value) is distinct from 'array' then
    raise exception '% must be a list, not %: nothing was written', p_what, coalesce(jsonb_typeof(p_value), 'absent')
      using errcode = 'invalid_parameter_value';
  end if;
end $$;

-- I7: replaces the balances of an account as a whole. A currency that comes twice: the later one stands.
-- Returns {written, deleted, unchanged}.
create function public.snaptrade_write_balances(p_account_id text, p_rows jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_result jsonb;
begin
  perform public.snaptrade_require_list('balances', p_rows);
  with given as materialized (
    select distinct on (w.currency) w.currency, w.cash, w."buyingPower" as buying_power
    from rows from (jsonb_to_recordset(p_rows) as (currency text, cash numeric, "buyingPower" numeric)) with ordinality as w
    order by w.currency, w.ordinality desc
  ), gone as (
    delete from public.snaptrade_balances s
    where s.account_id = p_account_id and not exists (select from given g where g.currency = s.currency)
    returning 1
  ), written as (
    insert into public.snaptrade_balances as t (account_id, currency, cash, buying_power)
    select p_account_id, g.currency, g.cash, g.buying_power
    from given g
    left join public.snaptrade_balances s on s.account_id = p_account_id and s.currency = g.currency
    -- As text: 1.5 and 1.50 are equal numbers, but there is no raw column here that would show the change.
    where (s.currency, s.cash::text, s.buying_power::text) is distinct from (g.currency, g.cash::text, g.buying_power::text)
    on conflict (account_id, currency) do update
      set cash = excluded.cash, buying_power = excluded.buying_power, updated_at = now()
    returning 1
  )
  select jsonb_build_object('written', w.n, 'deleted', d.n, 'unchanged', g.n - w.n) into v_result
  from (select count(*) as n from given) g, (select count(*) as n from written) w, (select count(*) as n from gone) d;
  return v_result;
end $$;

-- I7: replaces the positions of an account as a whole. A key that comes twice: the later one stands.
-- Returns {written, deleted, unchanged}.
create function public.snaptrade_write_positions(p_account_id text, p_rows jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_result jsonb;
begin
  perform public.snaptrade_require_list('positions', p_rows);
  with given as materialized (
    select distinct on (w."positionKey") w."positionKey" as position_key, w.kind, w.symbol, w.description, w.currency,
      w.units, w.price, w."costBasis" as cost_basis, coalesce(w."cashEquivalent", false) as cash_equivalent,
      w."optionType" as option_type, w."strikePrice" as strike_price,
      public.snaptrade_day(w."expirationDate") as expiration_date, w.multiplier, w.raw
    from rows from (jsonb_to_recordset(p_rows) as ("positionKey" text, kind text, symbol text, description text,
      currency text, units numeric, price numeric, "costBasis" numeric, "cashEquivalent" boolean, "optionType" text,
      "strikePrice" numeric, "expirationDate" text, multiplier numeric, raw text)) with ordinality as w
    order by w."positionKey", w.ordinality desc
  ), gone as (
    delete from public.snaptrade_positions s
    where s.account_id = p_account_id and not exists (select from given g where g.position_key = s.position_key)
    returning 1
  ), written as (
    insert into public.snaptrade_positions as t (account_id, position_key, kind, symbol, description, currency, units,
      price, cost_basis, cash_equivalent, option_type, strike_price, expiration_date, multiplier, raw)
    select p_account_id, g.position_key, g.kind, g.symbol, g.description, g.currency, g.units, g.price, g.cost_basis,
      g.cash_equivalent, g.option_type, g.strike_price, g.expiration_date, g.multiplier, g.raw::json
    from given g
    left join public.snaptrade_positions s on s.account_id = p_account_id and s.position_key = g.position_key
    where (s.position_key, s.kind, s.symbol, s.description, s.currency, s.units, s.price, s.cost_basis, s.cash_equivalent,
        s.option_type, s.strike_price, s.expiration_date, s.multiplier, s.raw::text)
      is distinct from (g.position_key, g.kind, g.symbol, g.description, g.currency, g.units, g.price, g.cost_basis,
        g.cash_equivalent, g.option_type, g.strike_price, g.expiration_date, g.multiplier, g.raw)
    on conflict (account_id, position_key) do update set kind = excluded.kind, symbol = excluded.symbol,
      description = excluded.description, currency = excluded.currency, units = excluded.units, price = excluded.price,
      cost_basis = excluded.cost_basis, cash_equivalent = excluded.cash_equivalent, option_type = excluded.option_type,
      strike_price = excluded.strike_price, expiration_date = excluded.expiration_date, multiplier = excluded.multiplier,
      raw = excluded.raw, updated_at = now()
    returning 1
  )
  select jsonb_build_object('written', w.n, 'deleted', d.n, 'unchanged', g.n - w.n) into v_result
  from (select count(*) as n from given) g, (select count(*) as n from written) w, (select count(*) as n from gone) d;
  return v_result;
end $$;

-- I7: replaces the orders of an account as a whole. A key that comes twice: the later one stands.
-- Returns {written, deleted, unchanged}.
create function public.snaptrade_write_orders(p_account_id text, p_rows jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_result jsonb;
begin
  perform public.snaptrade_require_list('orders', p_rows);
  with given as materialized (
    select distinct on (w."orderKey") w."orderKey" as order_key, w."brokerageOrderId" as brokerage_order_id, w.status,
      w.action, w.symbol, w."orderType" as order_type, w."timeInForce" as time_in_force,
      w."totalQuantity" as total_quantity, w."openQuantity" as open_quantity, w."canceledQuantity" as canceled_quantity,
      w."filledQuantity" as filled_quantity, w."executionPrice" as execution_price, w."limitPrice" as limit_price,
      w."stopPrice" as stop_price, public.snaptrade_moment(w."timePlaced") as time_placed,
      public.snaptrade_moment(w."timeUpdated") as time_updated, public.snaptrade_moment(w."timeExecuted") as time_executed,
      w.raw
    from rows from (jsonb_to_recordset(p_rows) as ("orderKey" text, "brokerageOrderId" text, status text, action text,
      symbol text, "orderType" text, "timeInForce" text, "totalQuantity" numeric, "openQuantity" numeric,
      "canceledQuantity" numeric, "filledQuantity" numeric, "executionPrice" numeric, "limitPrice" numeric,
      "stopPrice" numeric, "timePlaced" text, "timeUpdated" text, "timeExecuted" text, raw text)) with ordinality as w
    order by w."orderKey", w.ordinality desc
  ), gone as (
    delete from public.snaptrade_orders s
    where s.account_id = p_account_id and not exists (select from given g where g.order_key = s.order_key)
    returning 1
  ), written as (
    insert into public.snaptrade_orders as t (account_id, order_key, brokerage_order_id, status, action, symbol,
      order_type, time_in_force, total_quantity, open_quantity, canceled_quantity, filled_quantity, execution_price,
      limit_price, stop_price, time_placed, time_updated, time_executed, raw)
    select p_account_id, g.order_key, g.brokerage_order_id, g.status, g.action, g.symbol, g.order_type, g.time_in_force,
      g.total_quantity, g.open_quantity, g.canceled_quantity, g.filled_quantity, g.execution_price, g.limit_price,
      g.stop_price, g.time_placed, g.time_updated, g.time_executed, g.raw::json
    from given g
    left join public.snaptrade_orders s on s.account_id = p_account_id and s.order_key = g.order_key
    where (s.order_key, s.brokerage_order_id, s.status, s.action, s.symbol, s.order_type, s.time_in_force,
        s.total_quantity, s.open_quantity, s.canceled_quantity, s.filled_quantity, s.execution_price, s.limit_price,
        s.stop_price, s.time_placed, s.time_updated, s.time_executed, s.raw::text)
      is distinct from (g.order_key, g.brokerage_order_id, g.status, g.action, g.symbol, g.order_type, g.time_in_force,
        g.total_quantity, g.open_quantity, g.canceled_quantity, g.filled_quantity, g.execution_price, g.limit_price,
        g.stop_price, g.time_placed, g.time_updated, g.time_executed, g.raw)
    on conflict (account_id, order_key) do update set brokerage_order_id = excluded.brokerage_order_id,
      status = excluded.status, action = excluded.action, symbol = excluded.symbol, order_type = excluded.order_type,
      time_in_force = excluded.time_in_force, total_quantity = excluded.total_quantity,
      open_quantity = excluded.open_quantity, canceled_quantity = excluded.canceled_quantity,
      filled_quantity = excluded.filled_quantity, execution_price = excluded.execution_price,
      limit_price = excluded.limit_price, stop_price = excluded.stop_price, time_placed = excluded.time_placed,
      time_updated = excluded.time_updated, time_executed = excluded.time_executed, raw = excluded.raw, updated_at = now()
    returning 1
  )
  select jsonb_build_object('written', w.n, 'deleted', d.n, 'unchanged', g.n - w.n) into v_result
  from (select count(*) as n from given) g, (select count(*) as n from written) w, (select count(*) as n from gone) d;
  return v_result;
end $$;

-- I7: what a run has read of the holdings, part by part, each replaced as a whole or left alone.
-- p_parts: {balances?: Balance[], positions?: {positions: Position[], asOf}, orders?: Order[], ordersUnsupported?: true}.
-- An absent or null part is not written. Neither is a part that the newest event reported as failed upstream (a positive
-- answer is then the old data or none), except positions that are newer than that report; nor positions that are older
-- than the stored ones; nor an empty list of positions that does not say when it was true. Positions without a readable
-- asOf are otherwise taken: the fence orders the reads, and refusing them could freeze an account for ever. An asOf in
-- the future counts as unreadable for the same reason.
-- Returns {balances, positions, orders: {written, deleted, unchanged} | 'skipped', complete}; complete: no part was
-- missing (orders may be unsupported) and none was left out for want of a good answer; older positions are an answer.
create function public.snaptrade_write_holdings(p_account_id text, p_parts jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_account public.snaptrade_accounts;
  v_balances jsonb := nullif(p_parts -> 'balances', 'null');
  v_positions jsonb := nullif(p_parts -> 'positions', 'null');
  v_orders jsonb := nullif(p_parts -> 'orders', 'null');
  v_as_of timestamptz := public.snaptrade_moment(p_parts -> 'positions' ->> 'asOf');
  v_result jsonb := '{"balances": "skipped", "positions": "skipped", "orders": "skipped"}';
begin
  if jsonb_typeof(p_parts) is distinct from 'object' then
    raise exception 'holdings must be an object of parts, not %: nothing was written', coalesce(jsonb_typeof(p_parts), 'absent')
      using errcode = 'invalid_parameter_value';
  end if;
  select * into v_account from public.snaptrade_accounts where account_id = p_account_id;
  if not found then
    raise exception 'account % is not known: nothing was written', p_account_id using errcode = 'foreign_key_violation';
  end if;

  if 'balances' = any (v_account.failed_parts) then
    v_balances := null;
  end if;
  if 'orders' = any (v_account.failed_parts) then
    v_orders := null;
  end if;
  if v_as_of > clock_timestamp() + interval '10 minutes' then
    v_as_of := null;
  end if;
  if 'positions' = any (v_account.failed_parts) and not coalesce(v_as_of > v_account.failed_parts_at, false) then
    v_positions := null;
  end if;
  if v_as_of is null and v_positions -> 'positions' = '[]' then
    v_positions := null;
  end if;

  if v_balances is not null then
    v_result := v_result || jsonb_build_object('balances', public.snaptrade_write_balances(p_account_id, v_balances));
  end if;
  if v_positions is not null and not coalesce(v_as_of < v_account.positions_as_of, false) then
    v_result := v_result || jsonb_build_object('positions',
      public.snaptrade_write_positions(p_account_id, v_positions -> 'positions'));
    update public.snaptrade_accounts set positions_as_of = v_as_of
    where account_id = p_account_id and v_as_of is not null and positions_as_of is distinct from v_as_of;
  end if;
  if v_orders is not null then
    v_result := v_result || jsonb_build_object('orders', public.snaptrade_write_orders(p_account_id, v_orders));
  end if;
  return v_result || jsonb_build_object('complete', v_balances is not null and v_positions is not null
    and (v_orders is not null or coalesce((p_parts ->> 'ordersUnsupported')::boolean, false)));
end $$;
