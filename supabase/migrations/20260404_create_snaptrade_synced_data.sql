-- What SnapTrade says about an account: balances, positions, orders (each a part that is replaced as a whole) and
-- transactions (kept for ever). The rows of an account are written by snaptrade_write_* only.
--
-- Numbers are unconstrained numeric, so the digits that came on the wire are the digits that are stored. raw is the
-- wire element as it came: json and not jsonb, because jsonb rewrites numbers and refuses \u0000. Dates of the wire are
-- typed where they can be read and null where they cannot: a date never makes a write fail, and raw still has it.

create table public.snaptrade_balances (
  account_id text not null references public.snaptrade_accounts,
  currency text not null,
  cash numeric,
  buying_power numeric,
  updated_at timestamptz not null default now(),
  primary key (account_id, currency)
);

create table public.snaptrade_positions (
  account_id text not null references public.snaptrade_accounts,
  position_key text not null,
  kind text not null,
  symbol text,
  description text,
  currency text,
  units numeric,
  price numeric,
  cost_basis numeric,
  cash_equivalent boolean not null default false,
  option_type text,
  strike_price numeric,
  expiration_date date,
  multiplier numeric,
  raw json not null,
  updated_at timestamptz not null default now(),
  primary key (account_id, position_key)
);
comment on column public.snaptrade_positions.cash_equivalent is
  'Such a position may also be part of the cash balance: add only one of the two.';
comment on column public.snaptrade_positions.cost_basis is 'Of an option: per contract (SnapTrade API reference).';

create table public.snaptrade_orders (
  account_id text not null references public.snaptrade_accounts,
  order_key text not null,
  brokerage_order_id text not null,
  status text,
  action text,
  symbol text,
  order_type text,
  time_in_force text,
  total_quantity numeric,
  open_quantity numeric,
  canceled_quantity numeric,
  filled_quantity numeric,
  execution_price numeric,
  limit_price numeric,
  stop_price numeric,
  time_placed timestamptz,
  time_updated timestamptz,
  time_executed timestamptz,
  raw json not null,
  updated_at timestamptz not null default now(),
  primary key (account_id, order_key)
);
comment on column public.snaptrade_orders.order_key is
  'The order''s id and the leg''s occurrence: an order of several legs comes as one record a leg, all with its id.';

create table public.snaptrade_transactions (
  id bigint generated always as identity primary key,
  account_id text not null references public.snaptrade_accounts,
  activity_id text,
  fingerprint text not null,
  occurrence integer not null,
  type text,
  symbol text,
  option_symbol text,
  option_type text,
  description text,
  currency text,
  price numeric,
  units numeric,
  amount numeric,
  fee numeric,
  fx_rate numeric,
  trade_date date,
  settlement_date date,
  institution text,
  external_reference_id text,
  raw json not null,
  updated_at timestamptz not null default now(),
  constraint snaptrade_transactions_one_occurrence unique (account_id, fingerprint, occurrence)
);
comment on column public.snaptrade_transactions.id is
  'Ours, and stable when SnapTrade issues a new activity_id for the same transaction: what a product keeps beside it refers to this.';
comment on column public.snaptrade_transactions.fingerprint is
  'Of the attributes without the id. Two genuine equal trades share it and differ in occurrence (1, 2, ...; gaps are harmless).';
comment on column public.snaptrade_transactions.trade_date is
  'The day as SnapTrade wrote it (UTC), which is what its date filter goes by; the time, where there is one, is in raw.';
-- Not only an index for look-ups: whatever two writers do, an id never stands on two rows.
create unique index snaptrade_transactions_activity_id on public.snaptrade_transactions (account_id, activity_id)
  where activity_id is not null;
-- "The latest transactions of an account", and the pages after them by keyset.
create index snaptrade_transactions_trade_date on public.snaptrade_transactions (account_id, trade_date desc, id desc);
