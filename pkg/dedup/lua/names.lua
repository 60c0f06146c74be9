-- ARGV: 11.. ids. Answers the owners' names, each behind its length in 2 bytes.
local m, no = guard(false)
if not m then return no end
local names = {}
for i = 11, #ARGV do
  local name = call('HGET', P .. 'o', ARGV[i]) or ''
  names[#names + 1] = char(floor(#name / 256), #name % 256) .. name
end
return ok(m, table.concat(names))
