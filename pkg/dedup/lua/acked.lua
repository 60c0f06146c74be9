-- ARGV: 10 owner. Answers its run "lo,hi", or nothing.
local m, no = guard(false)
if not m then return no end
local id = call('HGET', P .. 'i', ARGV[10])
return ok(m, id and call('HGET', P .. 'a', id) or '')
