-- ARGV: 11 owner, 12 lo, 13 hi. Within a run only hi grows; another lo is
-- another run and replaces it, and an empty one starts afresh (F3): what an
-- earlier life had published from the same offset on is not this life's.
local m, no = guard(false)
if not m then return no end
-- A full server refuses the first write only when it needs memory: what opens
-- gates must get through.
call('PERSIST', M)
local id = intern(ARGV[11])
if not id then return redis.error_reply(full) end
local lo, hi = string.match(call('HGET', P .. 'a', id) or '', '^(%d+),(%d+)$')
if lo ~= ARGV[12] or ARGV[12] == ARGV[13] or tonumber(hi) < tonumber(ARGV[13]) then
  call('HSET', P .. 'a', id, ARGV[12] .. ',' .. ARGV[13])
end
return ok(m, '')
