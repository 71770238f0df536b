-- While a part of an account's holdings has failed upstream, each event of it must reach its row: the one that says that all
-- is well again lets the part be read. Were it answered from the queued key alone, and its row then lost, the queued job
-- would leave the part out, and so would every run until somebody else says it (I1). So no job stands behind that key.

-- A reading that was put back in the middle, or that must leave something out: its job covers younger events only by their
-- rows, so none of them may be answered without one. Replaces 20260505's, which knew the first alone and gave it its name.
create or replace function public.snaptrade_is_half_read(p_work_type text, p_account_id text) returns boolean
language sql stable security invoker set search_path = '' as $$
  select exists (select from public.snaptrade_accounts a
    where a.account_id = p_account_id
      and case p_work_type
        when 'transactions' then (a.transactions_cursor ->> 'pages')::integer > 0
        else a.failed_parts && array['balances', 'positions', 'orders']
      end);
$$;
