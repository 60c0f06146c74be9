-- Stands before every script. KEYS[1] is the marker of the hash-tag group; all
-- other keys share its prefix, and so its slot in a cluster.
-- ARGV: 1 table uuid, 2 expected epoch or '', 3 domain name, 4 route, 5 groups,
-- 6 insert deadline D, 7 horizon, 8 cut-off time, 9 slack (all ms), 10 largest
-- epoch that the caller knows.
-- A script answers one bulk string whose first byte says what follows.
local call, byte, sub, char, floor = redis.call, string.byte, string.sub, string.char, math.floor
local M = KEYS[1]
local P = sub(M, 1, -2)
local T = call('TIME')
local now = T[1] * 1000 + floor(T[2] / 1000)

-- Lua's own tostring keeps 14 digits only, an epoch has 16.
local function int(x) return string.format('%.0f', x) end

-- The process and its replication history: a restart, a failover and a resync
-- change one of them, and with each of these writes may have been lost.
local function server()
  local x = call('INFO', 'server', 'replication')
  local function field(name)
    local _, e = string.find(x, name, 1, true)
    return e and string.match(x, '^%w+', e + 1) or ''
  end
  return field('run_id:') .. '/' .. field('master_replid:'), field('role:')
end

local function readonly()
  return redis.error_reply('READONLY this server is a replica')
end

-- Returns the marker, or nil and the answer that ends the script.
local function guard(closed)
  local r = call('HMGET', M, 'v', 'name', 'route', 'groups', 'epoch', 'id', 'table', 'd', 'h', 'cutoff', 'slot', 'q', 'verify', 'max')
  local id, role = server()
  if role ~= 'master' then return nil, readonly() end
  if not r[1] then return nil, 'M' end
  if r[1] ~= '1' then return nil, 'V' .. r[1] end
  if r[2] ~= ARGV[3] or r[3] ~= ARGV[4] or r[4] ~= ARGV[5] then
    return nil, 'R' .. r[2] .. ';' .. r[3] .. ';' .. r[4]
  end
  local m = {epoch = r[5], d = tonumber(r[8]), h = tonumber(r[9]), cutoff = tonumber(r[10]), slot = tonumber(r[11]),
    q = r[12] and tonumber(r[12]), max = r[14] and tonumber(r[14])}
  if r[6] ~= id then return nil, 'I' .. m.epoch end
  if r[7] ~= ARGV[1] then return nil, 'T' .. m.epoch .. ';' .. r[7] end
  -- Below what the caller knows it is another store's, and nothing is written.
  if tonumber(m.epoch) < tonumber(ARGV[10]) then return nil, 'E' .. m.epoch end
  if ARGV[2] ~= '' and ARGV[2] ~= m.epoch then return nil, 'E' .. m.epoch end
  -- The largest ever announced holds: everyone waits and remembers that long.
  if tonumber(ARGV[6]) > m.d then m.d = tonumber(ARGV[6]) call('HSET', M, 'd', ARGV[6]) end
  if tonumber(ARGV[7]) > m.h then m.h = tonumber(ARGV[7]) call('HSET', M, 'h', ARGV[7]) end
  if tonumber(ARGV[8]) > m.cutoff then m.cutoff = tonumber(ARGV[8]) call('HSET', M, 'cutoff', ARGV[8]) end
  if closed and m.q then
    return nil, 'Q' .. m.epoch .. ';' .. int(m.q) .. ';' .. int(m.d) .. ';' .. int(m.cutoff) .. ';' .. int(now)
  end
  -- A store that lost writes can't vouch for absence until it has been rebuilt
  -- or a whole horizon has gone by.
  m.verify = (r[13] and now - tonumber(r[13]) <= m.h + tonumber(ARGV[9])) and '1' or '0'
  return m
end

local function ok(m, payload)
  return 'K' .. m.epoch .. ';' .. m.verify .. ';' .. int(now) .. ';' .. int(m.d) .. ';' .. int(m.h) .. ';' .. payload
end

-- Owners (group and source) are interned for each hash-tag group, so that what
-- is lost together was written together. The name goes first: an id without a
-- name could not be read, a name without an id is only a gap.
local function intern(text)
  local id = call('HGET', P .. 'i', text)
  if id then return tonumber(id) end
  id = call('HLEN', P .. 'o') + 1
  if id > 4194303 then return nil end
  call('HSET', P .. 'o', id, text)
  call('HSET', P .. 'i', text, id)
  return id
end
local full = 'ERR oncesink: 4194303 owners (consumer group and partition) are known in this hash-tag group, no more fit'

-- The three bytes before the offset: 22 bits of id, then taken and fresh.
local function prefix(id, flags)
  local x = id * 4 + flags
  return char(floor(x / 65536), floor(x / 256) % 256, x % 256)
end

local function owner(v)
  local a, b, c, o1, o2, o3, o4, o5 = byte(v, 1, 8)
  return a * 16384 + b * 64 + floor(c / 4), c % 4, (((o1 * 256 + o2) * 256 + o3) * 256 + o4) * 256 + o5
end

-- What a released claim leaves behind: whoever meets it claims the key with the
-- taken flag, so that no run that was published before can vouch for it.
local released = string.rep('\0', 16)

-- The nonce of a claim whose row is known to be in this very table, its views
-- included. A live nonce never has the high bit.
local done = tonumber(sub(ARGV[1], 1, 8), 16) % 2147483648 + 2147483648
done = char(floor(done / 16777216), floor(done / 65536) % 256, floor(done / 256) % 256, done % 256)

local runs = {}
local function covered(id, offset)
  local run = runs[id]
  if run == nil then
    local lo, hi = string.match(call('HGET', P .. 'a', id) or '', '^(%d+),(%d+)$')
    run = lo and {tonumber(lo), tonumber(hi)} or false
    runs[id] = run
  end
  return run and offset >= run[1] and offset < run[2]
end
