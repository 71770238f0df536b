import { once } from "@/sandbox/postgres/databases";
import { liteBaseSchema } from "@/sandbox/supabase/lite-app";

/**
 * What a database on Supabase has before the first migration: the API roles with their default privileges, and the
 * `auth` schema with `auth.users` and `auth.uid()`. Parts that are there are left alone, so it can be run again and
 * against a real Supabase database.
 */
export async function installSupabaseBase(url: string): Promise<void> {
  await once(url, async (sql) => {
    await sql.unsafe(ROLES);
    const [auth] = await sql`select to_regclass('auth.users') as users`;
    if (auth?.users === null) await sql.unsafe(await liteBaseSchema());
    await sql.unsafe(PRIVILEGES);
  });
}

/** Roles belong to the whole server: two databases that are prepared at once may meet here. */
const ROLES = `
  do $$
  declare
    role record;
  begin
    for role in select * from (values
      ('anon', 'nologin'), ('authenticated', 'nologin'), ('service_role', 'nologin bypassrls'),
      ('authenticator', 'login noinherit password ''postgres''')) as wanted (name, attributes)
    loop
      if not exists (select from pg_roles where rolname = role.name) then
        begin
          execute format('create role %I %s', role.name, role.attributes);
        exception when duplicate_object or unique_violation then null;
        end;
      end if;
    end loop;
    if not pg_has_role(current_user, 'service_role', 'member') or not pg_has_role('authenticator', 'service_role', 'member') then
      execute format('grant anon, authenticated, service_role to %I, authenticator', current_user);
    end if;
  end $$;
`;

/** As Supabase sets them: everything in "public" is open to the API roles until a migration says otherwise. */
const PRIVILEGES = `
  grant usage on schema public, auth to anon, authenticated, service_role;
  alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
  alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;
  alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
`;
