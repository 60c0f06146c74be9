-- ARGV: 11 owner, 12 nonce, 13 first offset, 14 late, 15 largest bucket, 16 body,
-- 17 epoch and horizon under which the client knows of buckets that exist: the
-- high bit of a group's count. Their expiry needs no setting, as long as it is
-- the end of the slot that counts and not the time of the last use.
-- Item: field 10, offset 5, fingerprint 4. Entry: owner and flags 3, offset 5,
-- fingerprint 4, nonce 4.
-- Verdicts: 0 New, 8 New where an entry was, 2 Duplicate, 3 Settled, 4 Conflict, 7 Mine; the
-- entries of 2, 3, 4 and 7, as they were met, follow.
local m, no = guard(true)
if not m then return no end
local body, nonce, first, late = ARGV[16], ARGV[12], tonumber(ARGV[13]), ARGV[14] == '1'
local most = tonumber(ARGV[15])
local secs, pos = sections(m, body, true)
if not secs then return pos end
local id = intern(ARGV[11])
if not id then return redis.error_reply(full) end

local own = {}
for flags = 0, 3 do own[prefix(id, flags)] = flags end
-- In verify mode nothing is fresh: a call whose answer was lost and that is sent
-- again after the mode has ended must not pass for one that needs no reading.
local fresh = m.verify == '1' and 0 or 1
local new = prefix(id, late and 2 + fresh or fresh)
local new_taken = prefix(id, 2 + fresh)
local trusted = ARGV[17] == m.epoch .. ';' .. int(m.h)
local plain, taken = prefix(id, 0), prefix(id, 2)

-- The fingerprint of a row that was read from the table: its record is not known.
local unknown = '\0\0\0\0'
local verdicts, met, n = {}, {}, 0

-- The verdict on a key that has an entry, and what the entry becomes.
local function judge(v, p)
  if v == released then return '8', new_taken .. sub(body, p + 10, p + 18) .. nonce end
  local settled = sub(v, 13, 16) == done
  local flags = own[sub(v, 1, 3)]
  if flags then
    if sub(v, 4, 8) == sub(body, p + 10, p + 14) then
      if flags % 2 == 1 and sub(v, 13, 16) == nonce then return '8' end
      met[#met + 1] = v
      if settled then return '7' end
      return '7', ((late or flags >= 2) and taken or plain) .. sub(v, 4, 12) .. nonce
    end
    local _, _, offset = owner(v)
    if offset >= first and sub(v, 9, 12) == sub(body, p + 15, p + 18) then
      met[#met + 1] = v
      if settled then return '7' end
      return '7', ((late or flags >= 2) and taken or plain) .. sub(v, 4, 12) .. nonce
    end
  end
  met[#met + 1] = v
  if sub(v, 9, 12) ~= sub(body, p + 15, p + 18) and sub(v, 9, 12) ~= unknown then return '4' end
  local oid, f, offset = owner(v)
  if settled or f < 2 and covered(oid, offset) then return '3' end
  return '2'
end

-- A bucket that would leave its compact encoding gets a bigger layer beside it,
-- for the calls to come: this one goes on where it began, so that no key of it
-- is claimed twice.
local function crowded(sec, key, count)
  if sec.grown or #sec.layers >= 9 then return end
  local bits = byte(sec.layers, #sec.layers)
  if bits >= 26 or call('HLEN', key) + count <= most then return end
  bits = math.min(26, math.max(bits + 3, sec.hint))
  call('SET', P .. 's' .. sec.slot, sec.layers .. char(bits), 'PXAT', sec.ends)
  sec.grown = true
end

for s = 1, #secs do
  local sec = secs[s]
  local places, expiry, np = sec.places, sec.expiry, #sec.places
  local base, ends = places[np], expiry[np]
  local steady = trusted and tonumber(ends) > now + m.h + tonumber(ARGV[9])
  for g = 1, sec.groups do
    local c1, c2, len = byte(body, pos, pos + 2)
    local count, known = c1 * 256 + c2, false
    if count >= 32768 then count, known = count - 32768, steady end
    local keys, key = nil, nil
    pos = pos + 2
    if np > 1 then
      keys = {}
      for k = 1, np do
        len = byte(body, pos)
        keys[k] = places[k] .. sub(body, pos + 1, pos + len)
        pos = pos + 1 + len
      end
      key = keys[np]
    else
      key = base .. sub(body, pos + 1, pos + len)
      pos = pos + 1 + len
    end
    if g % 32 == 1 or count > 8 then
      crowded(sec, key, count)
    end
    if count == 1 and np == 1 then
      local field = sub(body, pos, pos + 9)
      n = n + 1
      if call('HSETNX', key, field, new .. sub(body, pos + 10, pos + 18) .. nonce) == 1 then
        if not known then call('PEXPIREAT', key, ends) end
        verdicts[n] = '0'
      else
        local verdict, to = judge(call('HGET', key, field), pos)
        verdicts[n] = verdict
        if to then
          call('HSET', key, field, to)
          call('PEXPIREAT', key, ends)
        end
      end
    else
      local fields, found, where = {}, {}, {}
      for i = 1, count do
        local p = pos + (i - 1) * 19
        fields[i] = sub(body, p, p + 9)
      end
      if np == 1 then
        found = call('HMGET', key, unpack(fields))
      else
        for k = 1, np do
          local values = call('HMGET', keys[k], unpack(fields))
          for i = 1, count do
            if values[i] and not found[i] then found[i], where[i] = values[i], k end
          end
        end
      end
      local add, a = {}, 0
      for i = 1, count do
        local p = pos + (i - 1) * 19
        n = n + 1
        if found[i] then
          local verdict, to = judge(found[i], p)
          verdicts[n] = verdict
          if to then
            local k = where[i] or np
            local at = keys and keys[k] or key
            call('HSET', at, fields[i], to)
            call('PEXPIREAT', at, expiry[k])
          end
        else
          verdicts[n] = '0'
          add[a + 1], add[a + 2] = fields[i], new .. sub(body, p + 10, p + 18) .. nonce
          a = a + 2
        end
      end
      if a > 0 then
        call('HSET', key, unpack(add))
        if not known then call('PEXPIREAT', key, ends) end
      end
    end
    pos = pos + count * 19
  end
end
return ok(m, table.concat(verdicts) .. table.concat(met))
