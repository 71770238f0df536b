-- How transactions are written. As with holdings (20260406): the caller holds the lock and has checked the fence (I4), rows
-- are the provider port's objects, what did not change is neither written nor locked, every column is compared.

-- One page of a reading of transactions: each provider id ends on exactly one row, each genuine trade keeps its own (I7),
-- and the same page again writes nothing. A row of the page is
--   1. the stored row of its id, if there is one (the same id twice in a page: the later one stands);
--   2. else a stored row of the same fingerprint that no other row of this reading is: rows with ids choose first, and
--      first of the rows that have none, then of those whose id is gone. So late and re-issued ids are adopted, and what
--      a product keeps beside a row stays valid;
--   3. else new, with the next occurrence of its fingerprint.
-- An id is gone only if its day was read to the end without it, and pages end within days. A row whose trade has no id any
-- more loses it: should the id yet come, on an older day of a later page, it finds no row, and neither trade is missing. p_next is the cursor of the
-- next page, {oldestDate, offset}, or null after the last page:
--   offset 0: the next page begins again at the first row of the day oldestDate. A row of such a day that would replace an
--     id which may yet come is left to that page; every other row is written now.
--   offset > 0: the next page goes on behind this one (one day fills more than a page). The seam, which goes to the next
--     call as p_seam, carries the stored rows that already are a row of this reading, and the rows left to the next page.
-- Stored rows are looked up one by one ("offset 0" keeps the planner to that, and so does the list of ids of the update): it
-- expects accounts of the usual length, and would read the whole history of a long one for every page.
-- Returns {inserted, updated, adopted, unchanged, left: rows left to the next page, seam: {taken, left} or null}.
create function public.snaptrade_write_transactions(p_account_id text, p_rows jsonb, p_seam jsonb, p_next jsonb)
returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_next jsonb := nullif(p_next, 'null');
  v_goes_on boolean := coalesce((v_next ->> 'offset')::integer > 0, false);
  -- The days up to this one may lack rows that come with the next page; null: none does.
  v_open_until date := case when v_goes_on then 'infinity' else (v_next ->> 'oldestDate')::date end;
  v_rows jsonb;
  v_result jsonb;
begin
  perform public.snaptrade_require_list('transactions', p_rows);
  v_rows := coalesce((p_seam -> 'left') || p_rows, p_rows);
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
  ), given as materialized (
    select w.*, k.id as known_id, k.fingerprint as known_fingerprint,
      v_open_until is not null and coalesce(w.trade_date <= v_open_until, true) as open
    from wire w
    left join lateral (select t.id, t.fingerprint from public.snaptrade_transactions t
      where t.account_id = p_account_id and t.activity_id = w.activity_id offset 0) k on true
    where w.stands
  ), taken as materialized (
    select known_id as id from given where known_id is not null
    union select t.id::bigint from jsonb_array_elements_text(p_seam -> 'taken') t (id)
  ), loose as (
    select g.n, g.fingerprint, row_number() over (partition by g.fingerprint order by g.activity_id is null, g.n) as turn
    from given g where g.known_id is null
  ), candidate as (
    select s.id, s.fingerprint, s.named,
      row_number() over (partition by s.fingerprint order by s.named, s.occurrence) as turn
    from (select distinct l.fingerprint from loose l) l
    cross join lateral (
      select t.id, t.fingerprint, t.activity_id is not null as named, t.occurrence from public.snaptrade_transactions t
      where t.account_id = p_account_id and t.fingerprint = l.fingerprint offset 0) s
    where not exists (select from taken t where t.id = s.id)
  ), paired as materialized (
    -- The n-th of the one side with the n-th of the other. Grouped, not joined: a page of re-issued ids stays linear.
    select max(b.n) as n, max(b.id) as id, coalesce(bool_or(b.named), false) as named
    from (select fingerprint, turn, n, null::bigint as id, null::boolean as named from loose
      union all select fingerprint, turn, null, id, named from candidate) b
    group by b.fingerprint, b.turn
  ), decided as materialized (
    select g.*,
      coalesce(g.known_id, p.id) as row_id, coalesce(p.named, false) and g.open as is_left
    from given g
    left join paired p on p.n = g.n
  ), numbered as (
    -- Rows that come new to a fingerprint. Never a number that is in use, so no two rows meet while they change places.
    select d.n, row_number() over (partition by d.fingerprint order by d.n) + coalesce((select max(s.occurrence)
      from public.snaptrade_transactions s where s.account_id = p_account_id and s.fingerprint = d.fingerprint), 0) as occurrence
    from decided d
    where not d.is_left and (d.row_id is null or d.known_fingerprint <> d.fingerprint)
  ), updated as (
    update public.snaptrade_transactions t set activity_id = d.activity_id,
      fingerprint = d.fingerprint, occurrence = coalesce(d.occurrence, t.occurrence), type = d.type, symbol = d.symbol,
      option_symbol = d.option_symbol, option_type = d.option_type, description = d.description, currency = d.currency,
      price = d.price, units = d.units, amount = d.amount, fee = d.fee, fx_rate = d.fx_rate, trade_date = d.trade_date,
      settlement_date = d.settlement_date, institution = d.institution, external_reference_id = d.external_reference_id,
      raw = d.raw::json, updated_at = now()
    from (select * from decided left join numbered using (n) where not is_left) d
    where t.id = d.row_id and t.id = any (array(select row_id from decided where not is_left))
      and (t.activity_id, t.fingerprint, t.type, t.symbol, t.option_symbol, t.option_type, t.description, t.currency,
        t.price, t.units, t.amount, t.fee, t.fx_rate, t.trade_date, t.settlement_date, t.institution,
        t.external_reference_id, t.raw::text)
      is distinct from (d.activity_id, d.fingerprint, d.type, d.symbol, d.option_symbol,
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
    returning id
  ), seam as (
    select jsonb_build_object(
      'taken', coalesce((select jsonb_agg(o.id order by o.id) from (
        select t.id from taken t union select d.row_id from decided d where d.row_id is not null and not d.is_left
        union select i.id from inserted i) o), '[]'),
      'left', coalesce((select jsonb_agg(v_rows -> (d.n - 1)::integer order by d.n) from decided d where d.is_left), '[]'))
      as value
    where v_goes_on
  )
  select jsonb_build_object('inserted', i.n, 'updated', u.n - u.adopted, 'adopted', u.adopted,
    'unchanged', d.n - d.is_left - i.n - u.n, 'left', d.is_left, 'seam', (select value from seam)) into v_result
  from (select count(*) as n from inserted) i,
    (select count(*) as n, count(*) filter (where adopted) as adopted from updated) u,
    (select count(*) as n, count(*) filter (where is_left) as is_left from decided) d;
  return v_result;
end $$;
