-- How the synced data is written. The callers (commit, defer, fail) hold the advisory lock of the key and have checked
-- the fence (I4); nothing here does. The rows arrive as the provider port's objects: the same names, numbers as text.
-- Everywhere: what did not change is neither written nor locked, and every stored column takes part in the comparison
-- (a column that is left out of it would never be corrected).

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

-- One page of transactions; each provider id ends on exactly one row, each genuine trade keeps its own (I7), and the
-- same page again writes nothing. A row of the page is
--   1. the stored row of its id, if there is one (the same id twice in a page: the later one stands);
--   2. else a stored row of the same fingerprint that no other row of this reading is: ids first, one without an id
--      before one whose id is gone (so late and re-issued ids are adopted, and annotations of a product stay valid);
--   3. else new, with the next occurrence of its fingerprint.
-- An id is gone only if the whole day was read without it, and a page may begin or end within a day. So a reading of
-- several pages hands a seam from page to page: p_seam is null for its first page, then the seam that the page before
-- returned; p_last marks its last page (which may be empty). seam: {date: the days up to it are whole once read;
-- taken: stored rows of the unfinished days that already are a row of this reading; undecided: rows of the unfinished
-- days that would replace an id which may yet come: not written, they go with the next page}.
-- The order is SnapTrade's, newest day first; if a page breaks it, all of its days stay unfinished up to the last page.
-- Returns {inserted, updated, adopted, unchanged, undecided: count, seam: {...} or null after the last page}.
create function public.snaptrade_write_transactions(p_account_id text, p_rows jsonb, p_seam jsonb, p_last boolean)
returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_rows jsonb;
  v_result jsonb;
  v_whole_until date := coalesce((p_seam ->> 'date')::date, 'infinity');
begin
  perform public.snaptrade_require_list('transactions', p_rows);
  v_rows := coalesce(p_seam -> 'undecided', '[]') || p_rows;
  with wire as materialized (
    select w.ordinality as n, w."activityId" as activity_id, w.fingerprint, w.type, w.symbol, w."optionSymbol" as option_symbol,
      w."optionType" as option_type, w.description, w.currency, w.price, w.units, w.amount, w.fee, w."fxRate" as fx_rate,
      public.snaptrade_day(w."tradeDate") as trade_date, public.snaptrade_day(w."settlementDate") as settlement_date,
      w.institution, w."externalReferenceId" as external_reference_id, w.raw,
      w."activityId" is null
        or row_number() over (partition by w."activityId" order by w.ordinality desc) = 1 as stands
    from rows from (jsonb_to_recordset(v_rows) as ("activityId" text, fingerprint text, type text, symbol text,
      "optionSymbol" text, "optionType" text, description text, currency text, price numeric, units numeric,
      amount numeric, fee numeric, "fxRate" numeric, "tradeDate" text, "settlementDate" text, institution text,
      "externalReferenceId" text, raw text)) with ordinality as w
  ), edge as materialized (
    -- Days up to this one may go on in the next page; null: none may.
    select case when not p_last then
      least(v_whole_until, case when bool_or(d.trade_date > d.earliest_before) then max(d.trade_date) else min(d.trade_date) end)
    end as open_until
    from (select trade_date, min(trade_date) over (order by n rows between unbounded preceding and 1 preceding)
      as earliest_before from wire) d
  ), given as materialized (
    select w.*, k.id as known_id, k.fingerprint as known_fingerprint,
      not p_last and (w.trade_date is null or w.trade_date <= e.open_until) as open
    from wire w
    cross join edge e
    left join public.snaptrade_transactions k on k.account_id = p_account_id and k.activity_id = w.activity_id
    where w.stands
  ), taken as materialized (
    select known_id as id from given where known_id is not null
    union select t.id::bigint from jsonb_array_elements_text(p_seam -> 'taken') t (id)
  ), loose as (
    select g.n, g.fingerprint, row_number() over (partition by g.fingerprint order by g.activity_id is null, g.n) as turn
    from given g where g.known_id is null
  ), candidate as (
    select s.id, s.fingerprint, s.activity_id is not null as named,
      row_number() over (partition by s.fingerprint order by s.activity_id is not null, s.occurrence) as turn
    from public.snaptrade_transactions s
    where s.account_id = p_account_id and s.fingerprint in (select l.fingerprint from loose l)
      and not exists (select from taken t where t.id = s.id)
  ), paired as materialized (
    -- The n-th of the one side with the n-th of the other. Grouped, not joined: a page of re-issued ids stays linear.
    select max(b.n) as n, max(b.id) as id, coalesce(bool_or(b.named), false) as named
    from (select fingerprint, turn, n, null::bigint as id, null::boolean as named from loose
      union all select fingerprint, turn, null, id, named from candidate) b
    group by b.fingerprint, b.turn
  ), decided as materialized (
    select g.*,
      coalesce(g.known_id, case when not p.named or g.trade_date is null or g.trade_date <= v_whole_until then p.id end) as row_id,
      coalesce(p.named, false) and g.open as undecided
    from given g
    left join paired p on p.n = g.n
  ), numbered as (
    -- Rows that come new to a fingerprint. Never a number that is in use, so no two rows meet while they change places.
    select d.n, row_number() over (partition by d.fingerprint order by d.n) + coalesce((select max(s.occurrence)
      from public.snaptrade_transactions s where s.account_id = p_account_id and s.fingerprint = d.fingerprint), 0) as occurrence
    from decided d
    where not d.undecided and (d.row_id is null or d.known_fingerprint <> d.fingerprint)
  ), updated as (
    update public.snaptrade_transactions t set activity_id = coalesce(d.activity_id, t.activity_id),
      fingerprint = d.fingerprint, occurrence = coalesce(d.occurrence, t.occurrence), type = d.type, symbol = d.symbol,
      option_symbol = d.option_symbol, option_type = d.option_type, description = d.description, currency = d.currency,
      price = d.price, units = d.units, amount = d.amount, fee = d.fee, fx_rate = d.fx_rate, trade_date = d.trade_date,
      settlement_date = d.settlement_date, institution = d.institution, external_reference_id = d.external_reference_id,
      raw = d.raw::json, updated_at = now()
    from (select * from decided left join numbered using (n) where not undecided) d
    where t.id = d.row_id
      and (t.activity_id, t.fingerprint, t.type, t.symbol, t.option_symbol, t.option_type, t.description, t.currency,
        t.price, t.units, t.amount, t.fee, t.fx_rate, t.trade_date, t.settlement_date, t.institution,
        t.external_reference_id, t.raw::text)
      is distinct from (coalesce(d.activity_id, t.activity_id), d.fingerprint, d.type, d.symbol, d.option_symbol,
        d.option_type, d.description, d.currency, d.price, d.units, d.amount, d.fee, d.fx_rate, d.trade_date,
        d.settlement_date, d.institution, d.external_reference_id, d.raw)
    returning d.known_id is null and d.activity_id is not null as adopted
  ), inserted as (
    insert into public.snaptrade_transactions (account_id, activity_id, fingerprint, occurrence, type, symbol,
      option_symbol, option_type, description, currency, price, units, amount, fee, fx_rate, trade_date,
      settlement_date, institution, external_reference_id, raw)
    select p_account_id, d.activity_id, d.fingerprint, d.occurrence, d.type, d.symbol, d.option_symbol, d.option_type,
      d.description, d.currency, d.price, d.units, d.amount, d.fee, d.fx_rate, d.trade_date, d.settlement_date,
      d.institution, d.external_reference_id, d.raw::json
    from (select * from decided join numbered using (n) where row_id is null) d
    order by d.n desc
    returning id, trade_date
  ), seam as (
    select jsonb_build_object('date', coalesce(e.open_until, v_whole_until),
      'taken', coalesce((select jsonb_agg(o.id order by o.id) from (
        select d.row_id as id from decided d where d.open and d.row_id is not null and not d.undecided
        union select i.id from inserted i where i.trade_date is null or i.trade_date <= e.open_until
        union select s.id from public.snaptrade_transactions s join taken t on t.id = s.id
          where s.account_id = p_account_id and (s.trade_date is null or s.trade_date <= e.open_until)) o), '[]'),
      'undecided', coalesce((select jsonb_agg(v_rows -> (d.n - 1)::integer order by d.n) from decided d where d.undecided), '[]'))
      as value
    from edge e where not p_last
  )
  select jsonb_build_object('inserted', i.n, 'updated', u.n - u.adopted, 'adopted', u.adopted,
    'unchanged', d.n - i.n - u.n, 'undecided', d.undecided, 'seam', (select value from seam)) into v_result
  from (select count(*) as n from inserted) i,
    (select count(*) as n, count(*) filter (where adopted) as adopted from updated) u,
    (select count(*) filter (where not undecided) as n, count(*) filter (where undecided) as undecided from decided) d;
  return v_result;
end $$;
