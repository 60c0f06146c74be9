-- ARGV: 11 owner. Answers its run "lo,hi", "-" for an owner without one, or
-- nothing: no such owner has been here.
local m, no = guard(false)
if not m then return no end
local id = call('HGET', P .. 'i', ARGV[11])
return ok(m, id and (call('HGET', P .. 'a', id) or '-') or '')
