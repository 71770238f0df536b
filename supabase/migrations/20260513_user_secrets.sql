-- What the operators' commands need to know of stored secrets: whether a user has one, and all of them for a rotation.

-- {userId} -> {user: {removed, hasSecret} | null}
create function public.snaptrade_find_user(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' as $$
  select jsonb_build_object('user', (
    select jsonb_build_object('removed', u.deleted_at is not null, 'hasSecret', u.secret_ciphertext is not null)
    from public.snaptrade_users u where u.user_id = request ->> 'userId'));
$$;

-- {after?, limit} -> {users: [{userId, secretCiphertext}]}, page by page in the order of the ids.
create function public.snaptrade_list_secrets(request jsonb) returns jsonb
language sql stable security invoker set search_path = '' as $$
  select jsonb_build_object('users', coalesce(jsonb_agg(jsonb_build_object('userId', s.user_id,
    'secretCiphertext', s.secret_ciphertext) order by s.user_id), '[]'))
  from (select user_id, secret_ciphertext from public.snaptrade_users
    where user_id > coalesce(request ->> 'after', '') and deleted_at is null and secret_ciphertext is not null
    order by user_id limit (request ->> 'limit')::integer) s;
$$;

-- The same secrets under another key. What an operator stored meanwhile stands: it is answered, to be looked at again.
-- One order for all, so that two that run at once do not wait for each other.
--   {items: [{userId, from, to}]} -> {replaced, changed: [{userId, secretCiphertext}]}
-- A user who has no secret any more is in neither.
create function public.snaptrade_replace_secrets(request jsonb) returns jsonb
language plpgsql security invoker set search_path = '' as $$
declare
  v_item record;
  v_now text;
  v_replaced integer := 0;
  v_changed jsonb := '[]';
begin
  for v_item in
    select * from jsonb_to_recordset(request -> 'items') as i("userId" text, "from" text, "to" text) order by "userId"
  loop
    update public.snaptrade_users set secret_ciphertext = v_item."to"
    where user_id = v_item."userId" and secret_ciphertext = v_item."from" and deleted_at is null;
    if found then
      v_replaced := v_replaced + 1;
      continue;
    end if;
    select secret_ciphertext into v_now from public.snaptrade_users
    where user_id = v_item."userId" and deleted_at is null;
    continue when v_now is null;
    v_changed := v_changed || jsonb_build_object('userId', v_item."userId", 'secretCiphertext', v_now);
  end loop;
  return jsonb_build_object('replaced', v_replaced, 'changed', v_changed);
end $$;
