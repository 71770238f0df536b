-- Jobs and events. The two partial unique indexes are the durable form of the two slots (I3): for each key at most one
-- queued and at most one running job. One index over both states would refuse the event that arrives while a job runs.

create sequence public.snaptrade_fence as bigint;
comment on sequence public.snaptrade_fence is 'I4: grows with every run; writes carry it and an older one is refused.';

create table public.snaptrade_sync_jobs (
  id uuid primary key default gen_random_uuid(),
  work_type text not null check (work_type in ('holdings', 'transactions')),
  account_id text not null references public.snaptrade_accounts,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'done', 'superseded', 'dead', 'gone')),
  reason text not null check (reason in ('event', 'sweep', 'reconcile', 'replay', 'manual')),
  attempts integer not null default 0,
  delivery integer not null default 0,
  fence bigint,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  message_id text,
  republished integer not null default 0,
  published_at timestamptz,
  failed_at timestamptz,
  failed_status integer,
  pulled_attempt integer,
  last_error text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  check ((status = 'running') = (lease_until is not null)),
  check ((status in ('done', 'superseded', 'dead', 'gone')) = (finished_at is not null))
);
comment on column public.snaptrade_sync_jobs.delivery is
  'Number of the newest QStash message; 0: not published yet (a trailing job). An older delivery does nothing.';
comment on column public.snaptrade_sync_jobs.due_at is 'The earliest time the job may run: now, spacing, failure delay or cooldown.';
comment on column public.snaptrade_sync_jobs.republished is 'Publishes by reconcile in a row without a begin; each doubles the grace.';
comment on column public.snaptrade_sync_jobs.pulled_attempt is 'The failed attempt whose delay an event has already shortened.';

create unique index snaptrade_sync_jobs_one_queued on public.snaptrade_sync_jobs (work_type, account_id) where status = 'queued';
create unique index snaptrade_sync_jobs_one_running on public.snaptrade_sync_jobs (work_type, account_id) where status = 'running';
create index snaptrade_sync_jobs_dead on public.snaptrade_sync_jobs (work_type, account_id) where status = 'dead';
-- Neither final nor running is queued (the checks above). Said in other words than the slot's index on purpose: of two
-- indexes with one predicate the planner may take the wrong one for a slot, as long as its statistics are of a quiet hour
-- and both look empty; every webhook of a storm then read the whole queue.
create index snaptrade_sync_jobs_queued_created on public.snaptrade_sync_jobs (created_at, id)
  where finished_at is null and lease_until is null;
create index snaptrade_sync_jobs_running_lease on public.snaptrade_sync_jobs (lease_until) where lease_until is not null;
create index snaptrade_sync_jobs_finished on public.snaptrade_sync_jobs (finished_at) where finished_at is not null;

create table public.snaptrade_webhook_events (
  id bigint generated always as identity primary key,
  webhook_id text,
  event_type text,
  account_id text,
  connection_id text,
  user_id text,
  outcome text,
  processed boolean not null default false,
  job_ids uuid[] not null default '{}',
  event_timestamp timestamptz,
  received_at timestamptz not null default now(),
  finished_at timestamptz,
  payload json
);
comment on column public.snaptrade_webhook_events.processed is
  'Set by intake: accepted and queued. The worker adds finished_at, and processed where that breaks no uniqueness.';
comment on column public.snaptrade_webhook_events.payload is
  'The event without webhookSecret. json and not jsonb: number text and \u0000 stay as they came.';
create index snaptrade_webhook_events_webhook_id on public.snaptrade_webhook_events (webhook_id);
-- fastupdate off: each end of a run would otherwise read the list of entries that are not yet in the index from end to end.
create index snaptrade_webhook_events_open_jobs on public.snaptrade_webhook_events using gin (job_ids)
  with (fastupdate = off) where finished_at is null;
create index snaptrade_webhook_events_waiting on public.snaptrade_webhook_events (received_at) where outcome = 'waiting' and finished_at is null;
create index snaptrade_webhook_events_received on public.snaptrade_webhook_events (received_at);
