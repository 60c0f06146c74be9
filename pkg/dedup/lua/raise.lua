-- Raises the epoch by compare-and-set. ARGV as in guard.lua, where 2 is the
-- epoch that was seen, '' for a missing marker; 11 the table uuid that was seen
-- when the table was swapped, else ''; 12 slot length. A marker below the largest
-- epoch that the caller knows is raised as well: this store was exchanged for
-- another one in between, and has not got what was claimed there. It answers 'K',
-- or what stands in the way: the caller asks again.
local id, role = server()
if role ~= 'master' then return readonly() end
local r = call('HMGET', M, 'epoch', 'id', 'table', 'd', 'h', 'cutoff', 'slot')
if (r[1] or '') ~= ARGV[2] then return 'E' .. (r[1] or '0') end
local swapped = ARGV[11] ~= ''
if swapped and r[3] ~= ARGV[11] then return 'T' .. r[1] .. ';' .. r[3] end
local known = tonumber(ARGV[10])
if r[1] and not swapped and r[2] == id and tonumber(r[1]) >= known then return 'E' .. r[1] end
-- Not refused for want of memory: see publish.lua.
call('PERSIST', M)
local function largest(a, b) return int(math.max(tonumber(a or 0), tonumber(b))) end
local epoch = math.max(tonumber(r[1] or 0) + 1, known + 1, T[1] * 1000000 + T[2])
if not r[1] then
  call('HSET', M, 'v', 1, 'name', ARGV[3], 'route', ARGV[4], 'groups', ARGV[5], 'slot', ARGV[12])
end
-- What was published under the old epoch says nothing about claims that may
-- have been lost since.
call('DEL', P .. 'a')
call('HSET', M, 'epoch', int(epoch), 'id', id, 'table', (swapped or not r[1]) and ARGV[1] or r[3],
  'd', largest(r[4], ARGV[6]), 'h', largest(r[5], ARGV[7]), 'cutoff', largest(r[6], ARGV[8]),
  'q', int(now), 'verify', int(now))
return 'K' .. int(epoch) .. ';1;' .. int(now) .. ';' .. largest(r[4], ARGV[6]) .. ';' .. largest(r[5], ARGV[7]) .. ';'
