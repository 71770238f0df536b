-- The commits of a run. One transaction each: readers see all old or all new. An older fence writes nothing (I4); an
-- account that was removed while its data was read is not written either.

-- commit of holdings: {jobId, workType, accountId, fence, parts} -> {outcome: 'done', complete, publish} |
--   {outcome: 'fenced'} | {outcome: 'gone'}. holdings_synced_at moves only when all parts are good.
create function public.snaptrade_commit_holdings(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_complete boolean;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  if public.snaptrade_account_is_gone(v_job.account_id) then
    perform public.snaptrade_close_key(v_job.work_type, v_job.account_id);
    return jsonb_build_object('outcome', 'gone');
  end if;
  v_complete := public.snaptrade_write_parts(v_job, request -> 'parts');
  update public.snaptrade_accounts set
    holdings_synced_at = case when v_complete then v_job.started_at else holdings_synced_at end,
    holdings_retry_at = case when v_complete then null else clock_timestamp() + interval '6 hours' end
  where account_id = v_job.account_id;
  return jsonb_build_object('outcome', 'done', 'complete', v_complete, 'publish', public.snaptrade_finish_job(v_job));
end $$;

-- commit of one page of transactions: {jobId, workType, accountId, fence, rows, cursor (of the next page, or null after
--   the last), again (the cursor of another pass, or null), watermark (date, with the last page; null: there was no history
--   to read yet), pages (of the whole pass), pagesLeft, parts} -> {outcome: 'page' | 'done', ...}.
-- Each page stands under the fence; only the last one moves the watermark. The cursor carries the seam that the writer of
-- rows wants back with the next page, and when its pass began. A job that was put back in the middle of a pass goes on
-- covering new events: where one is younger than the pass, its last page begins another pass and not the end (I1).
create function public.snaptrade_commit_transactions(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' set enable_seqscan = off as $$
declare
  v_job public.snaptrade_sync_jobs;
  v_written jsonb;
  v_stored jsonb;
  v_cursor jsonb := nullif(request -> 'cursor', 'null');
  v_began timestamptz;
begin
  select * into v_job from public.snaptrade_hold_fence(request);
  if v_job.id is null then
    return jsonb_build_object('outcome', 'fenced');
  end if;
  if public.snaptrade_account_is_gone(v_job.account_id) then
    perform public.snaptrade_close_key(v_job.work_type, v_job.account_id);
    return jsonb_build_object('outcome', 'gone');
  end if;
  perform public.snaptrade_write_parts(v_job, request -> 'parts');
  select a.transactions_cursor into v_stored from public.snaptrade_accounts a where a.account_id = v_job.account_id;
  v_written := public.snaptrade_write_transactions(v_job.account_id, request -> 'rows', v_stored -> 'seam', v_cursor);
  v_began := coalesce((v_stored ->> 'beganAt')::timestamptz, v_job.started_at);
  if v_cursor is not null then
    v_cursor := v_cursor || jsonb_build_object('seam', v_written -> 'seam', 'beganAt', v_began);
  elsif jsonb_typeof(request -> 'again') = 'object' and exists (select from (
    -- offset 0: first the events of this job. Statistics of a quiet hour promise few events that are younger, and the
    -- planner would go through all that a storm has brought.
    select e.received_at from public.snaptrade_webhook_events e
    where e.finished_at is null and e.job_ids @> array[v_job.id] offset 0) covered where covered.received_at >= v_began) then
    v_cursor := request -> 'again';
  end if;
  if v_cursor is not null then
    update public.snaptrade_accounts set transactions_fence = v_job.fence, transactions_cursor = v_cursor,
      transactions_pages = greatest(1, (request ->> 'pagesLeft')::integer)
    where account_id = v_job.account_id;
    return jsonb_build_object('outcome', 'page', 'written', v_written);
  end if;
  -- The slot of the next run is the page count of this one; the first reading of a history says nothing about the next.
  update public.snaptrade_accounts set transactions_cursor = null, transactions_fence = v_job.fence,
    transactions_pages = case when transactions_watermark is null then 1 else greatest(1, (request ->> 'pages')::integer) end,
    transactions_watermark = coalesce((request ->> 'watermark')::date, transactions_watermark), transactions_synced_at = v_job.started_at
  where account_id = v_job.account_id;
  return jsonb_build_object('outcome', 'done', 'written', v_written, 'publish', public.snaptrade_finish_job(v_job));
end $$;
