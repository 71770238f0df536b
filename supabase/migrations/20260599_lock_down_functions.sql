-- The last file of a release (a later release ends with a copy of it under a later version): says once more, of
-- everything that the files before it made, who may touch it. The default privileges of 20260401 do the same at
-- creation; this holds also where a database came with others, or where objects were made by another role (I9, I10).
-- Idempotent. Functions in snaptrade_private have their grants beside them (20260405).

do $$
declare
  v_name text;
begin
  for v_name in
    select p.oid::regprocedure::text from pg_catalog.pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname like 'snaptrade\_%'
  loop
    execute format('revoke all on routine %s from public, anon, authenticated', v_name);
    execute format('grant execute on routine %s to service_role', v_name);
  end loop;

  for v_name in
    select c.oid::regclass::text from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'S' and c.relname like 'snaptrade\_%'
  loop
    execute format('revoke all on sequence %s from public, anon, authenticated', v_name);
    execute format('grant usage, select on sequence %s to service_role', v_name);
  end loop;

  for v_name in
    select c.oid::regclass::text from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') and c.relname like 'snaptrade\_%'
  loop
    execute format('revoke all on table %s from public, anon, authenticated', v_name);
    execute format('grant select, insert, update, delete on table %s to service_role', v_name);
  end loop;

  -- Back to readers: the tables that a policy shows them, and those only.
  for v_name in
    select distinct p.polrelid::regclass::text from pg_catalog.pg_policy p
    join pg_catalog.pg_class c on c.oid = p.polrelid
    where c.relnamespace = 'public'::regnamespace and c.relname like 'snaptrade\_%' and p.polcmd = 'r'
      and 'authenticated'::regrole = any (p.polroles)
  loop
    execute format('grant select on table %s to authenticated', v_name);
  end loop;

  -- A table of ours that a later file forgot to put under row-level security must not go out.
  select string_agg(c.relname, ', ') into v_name from pg_catalog.pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname like 'snaptrade\_%'
    and not c.relrowsecurity;
  if v_name is not null then
    raise exception 'row-level security is off on %: enable it in the migration that creates the table', v_name;
  end if;
end $$;
