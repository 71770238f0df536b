-- Users, connections and accounts, by SnapTrade's own text ids. Only the service role writes (20260405 has the policies
-- for readers). Every later function is revoked from the API roles by the default privileges that this file sets first.

alter default privileges in schema public revoke execute on functions from public, anon, authenticated;
alter default privileges in schema public revoke all on tables from public, anon, authenticated;
alter default privileges in schema public revoke all on sequences from public, anon, authenticated;
alter default privileges in schema public grant all on tables to service_role;
alter default privileges in schema public grant all on sequences to service_role;
alter default privileges in schema public grant execute on functions to service_role;
-- PUBLIC may execute new functions by a built-in default that only a role-wide rule can take away.
alter default privileges revoke execute on functions from public;

create table public.snaptrade_users (
  user_id text primary key,
  auth_user_id uuid,
  secret_ciphertext text,
  listed_at timestamptz,
  compared_at timestamptz,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
comment on column public.snaptrade_users.auth_user_id is 'The Supabase user; decides row-level security.';
comment on column public.snaptrade_users.secret_ciphertext is 'AES-256-GCM text; null once the user is deleted.';
comment on column public.snaptrade_users.listed_at is 'When reconcile last listed the accounts of this user (once a day).';
comment on column public.snaptrade_users.compared_at is 'When sync_status was last compared with our watermarks (once a day).';
create index snaptrade_users_auth_user_id on public.snaptrade_users (auth_user_id);

create table public.snaptrade_connections (
  connection_id text primary key,
  user_id text not null references public.snaptrade_users,
  brokerage text,
  disabled boolean not null default false,
  state_at timestamptz,
  removed_at timestamptz
);
comment on column public.snaptrade_connections.state_at is
  'eventTimestamp of the newest event that set the state: an older event never undoes a newer one.';
create index snaptrade_connections_user_id on public.snaptrade_connections (user_id);

create table public.snaptrade_accounts (
  account_id text primary key,
  connection_id text references public.snaptrade_connections,
  user_id text not null references public.snaptrade_users,
  institution_account_id text,
  name text,
  currency text,
  holdings_synced_at timestamptz,
  transactions_synced_at timestamptz,
  holdings_fence bigint not null default 0,
  transactions_fence bigint not null default 0,
  transactions_watermark date,
  transactions_cursor jsonb,
  transactions_pages integer not null default 1,
  transactions_ready boolean,
  holdings_attempted_at timestamptz,
  transactions_attempted_at timestamptz,
  holdings_retry_at timestamptz,
  positions_as_of timestamptz,
  failed_parts text[] not null default '{}',
  failed_parts_at timestamptz,
  detail_read_at timestamptz,
  state_at timestamptz,
  created_at timestamptz not null default now(),
  removed_at timestamptz
);
comment on column public.snaptrade_accounts.holdings_synced_at is
  'When the last complete holdings run began to read: everything that happened before is in the rows.';
comment on column public.snaptrade_accounts.holdings_retry_at is
  'Set by a run that ended well but not complete (a part had failed upstream): the sweep comes back no sooner.';
comment on column public.snaptrade_accounts.transactions_watermark is
  'UTC day on which the last complete transactions run began; the next run reads from seven days before it.';
comment on column public.snaptrade_accounts.transactions_cursor is
  'Where an unfinished transactions run goes on: {startDate, endDate, oldestDate, offset, pages}.';
comment on column public.snaptrade_accounts.failed_parts is
  'Parts that the newest event reported as failed upstream; they never replace stored data (I7).';
comment on column public.snaptrade_accounts.detail_read_at is 'Null for a bare row made from an event: the first run reads the account.';
comment on column public.snaptrade_accounts.transactions_ready is
  'SnapTrade has the history (sync_status.transactions.initial_sync_completed, as last read): the first reading waits for it.';
create index snaptrade_accounts_user_id on public.snaptrade_accounts (user_id);
create index snaptrade_accounts_connection_id on public.snaptrade_accounts (connection_id);

create table public.snaptrade_service_state (
  name text primary key,
  value jsonb not null default '{}',
  at timestamptz not null default now()
);
comment on table public.snaptrade_service_state is 'The cron heartbeat and the guard of the sweep.';
