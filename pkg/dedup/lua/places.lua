-- Where entries lie: packed sections of one slot (or of the arrival slots that
-- are asked together), each with the layers the client believes in, then the
-- entries grouped by bucket. The last place of a section takes new entries.
local function num36(s)
  if sub(s, 1, 1) == '-' then return -tonumber(sub(s, 2), 36) end
  return tonumber(s, 36)
end

local digits = '0123456789abcdefghijklmnopqrstuvwxyz'
local function text36(n)
  local s, sign = '', ''
  if n < 0 then n, sign = -n, '-' end
  repeat
    local d = n % 36
    s = sub(digits, d + 1, d + 1) .. s
    n = (n - d) / 36
  until n == 0
  return sign .. s
end

-- Bits for a slot that begins: from the slot before it, when it is well filled.
local function fitting(slot, bits)
  local before = text36(num36(slot) - 1)
  local layers = call('GET', P .. 's' .. before)
  if not layers then return bits end
  local total = 0
  for k = 1, #layers do
    local b = byte(layers, k)
    local n, sum = math.min(8, 2 ^ b), 0
    -- Spread: keys come in order, so neighbours fill together.
    for i = 0, n - 1 do sum = sum + call('HLEN', P .. before .. '.' .. (k - 1) .. text36(floor((i + 0.5) * 2 ^ b / n))) end
    total = total + sum / n * 2 ^ b
  end
  local want = 0
  while want < 26 and total / 2 ^ want > 110 do want = want + 1 end
  return want
end

local function layered(slot, layers)
  return char(#slot) .. slot .. char(#layers) .. layers
end

-- Reads the section headers. Returns them and the position of the first group,
-- or nil and the answer: nothing but a new slot's size is written before every
-- section has been found to agree.
local function sections(m, body, writes)
  local pos, secs, wrong = 3, {}, {}
  local arrival, n = byte(body, 1, 2)
  for i = 1, n do
    local hint, slots = byte(body, pos, pos + 1)
    pos = pos + 2
    local grow = hint >= 128
    local sec = {places = {}, expiry = {}, hint = hint % 128, grow = grow}
    if arrival == 1 then
      local cur = math.max(floor(now / m.slot), m.max or 0)
      local from = math.min(cur, floor((now - m.h) / m.slot))
      local len = byte(body, pos)
      local first, lastpos = sub(body, pos + 1, pos + len), pos
      for j = 2, slots do
        lastpos = lastpos + 1 + byte(body, lastpos)
        lastpos = lastpos + 1 + byte(body, lastpos)
      end
      len = byte(body, lastpos)
      if first ~= text36(from) or sub(body, lastpos + 1, lastpos + len) ~= text36(cur) then
        return nil, 'S' .. int(from) .. ';' .. int(cur)
      end
      -- Slots never go back, also when the clock does: an entry in the newer
      -- slot would not be asked.
      if writes and cur ~= m.max then call('HSET', M, 'max', int(cur)) end
    end
    for j = 1, slots do
      local len = byte(body, pos)
      local slot = sub(body, pos + 1, pos + len)
      pos = pos + 1 + len
      len = byte(body, pos)
      local layers = sub(body, pos + 1, pos + len)
      pos = pos + 1 + len
      local have = call('GET', P .. 's' .. slot) or ''
      sec.slot, sec.layers, sec.fresh = slot, layers, have == ''
      local create = writes and j == slots and have == ''
      if have ~= layers and not (create and len == 1) and not (have == '' and not writes) then
        wrong[#wrong + 1] = layered(slot, have)
      end
      local ends = string.format('%.0f', math.max(now, (num36(slot) + 1) * m.slot) + m.h + tonumber(ARGV[9]))
      for k = 1, len do
        sec.places[#sec.places + 1] = P .. slot .. '.' .. (k - 1)
        sec.expiry[#sec.expiry + 1] = ends
      end
      sec.ends = ends
    end
    local b1, b2, b3, b4 = byte(body, pos, pos + 3)
    sec.groups = ((b1 * 256 + b2) * 256 + b3) * 256 + b4
    pos = pos + 4
    secs[i] = sec
  end
  if #wrong > 0 then return nil, 'L' .. table.concat(wrong) end
  if writes then
    for i = 1, n do
      local sec = secs[i]
      local key = P .. 's' .. sec.slot
      local bits = sec.layers
      if sec.fresh then
        bits = char(fitting(sec.slot, byte(sec.layers, 1)))
      elseif sec.grow and #bits < 9 then -- this call alone would overflow it
        bits = bits .. char(sec.hint)
      end
      -- Before any bucket, so that a slot's size never expires before they do;
      -- and by SET, which a full server refuses: an expiry as first write would
      -- let the rest of the script write past maxmemory.
      call('SET', key, bits, 'PXAT', sec.ends)
      if bits ~= sec.layers then wrong[#wrong + 1] = layered(sec.slot, bits) end
    end
    if #wrong > 0 then return nil, 'L' .. table.concat(wrong) end
  end
  return secs, pos
end

-- Calls visit(position of the item, its field, its value or false, its place,
-- when the place expires) for every item of `size` bytes, in the body's order.
-- An item is asked in the oldest layer first.
local function walk(secs, body, pos, size, visit)
  for s = 1, #secs do
    local sec = secs[s]
    local np = #sec.places
    for g = 1, sec.groups do
      local c1, c2 = byte(body, pos, pos + 1)
      local count, keys = c1 * 256 + c2, {}
      pos = pos + 2
      for k = 1, np do
        local len = byte(body, pos)
        keys[k] = sec.places[k] .. sub(body, pos + 1, pos + len)
        pos = pos + 1 + len
      end
      local fields, found, where = {}, {}, {}
      for i = 1, count do
        local p = pos + (i - 1) * size
        fields[i] = sub(body, p, p + 9)
      end
      for k = 1, np do
        local values = call('HMGET', keys[k], unpack(fields))
        for i = 1, count do
          if values[i] and not found[i] then found[i], where[i] = values[i], k end
        end
      end
      for i = 1, count do
        local k = where[i] or np
        visit(pos + (i - 1) * size, fields[i], found[i] or false, keys[k], sec.expiry[k])
      end
      pos = pos + count * size
    end
  end
end
