-- ARGV: 11 owner, 12 new nonce, 13 first offset, 14 body.
-- Item: field 10, offset 5, old nonce 4. Verdicts: 0 New, 1 Mine, 5 Changed
-- (its entry follows), 6 absent.
local m, no = guard(true)
if not m then return no end
local body, nonce, first = ARGV[14], ARGV[12], tonumber(ARGV[13])
local secs, pos = sections(m, body, true)
if not secs then return pos end
local id = tonumber(call('HGET', P .. 'i', ARGV[11]) or -1)
local verdicts, met = {}, {}
walk(secs, body, pos, 19, function(p, field, v, key, ends)
  if not v or v == released then
    verdicts[#verdicts + 1] = '6'
    return
  end
  local oid, flags, offset = owner(v)
  local held = sub(v, 13, 16)
  local mine = oid == id and (offset >= first or sub(v, 4, 8) == sub(body, p + 10, p + 14))
  if not mine or held ~= nonce and held ~= sub(body, p + 15, p + 18) then
    verdicts[#verdicts + 1] = '5'
    met[#met + 1] = v
    return
  end
  verdicts[#verdicts + 1] = flags % 2 == 1 and '0' or '1'
  call('HSET', key, field, sub(v, 1, 12) .. nonce)
  call('PEXPIREAT', key, ends)
end)
return ok(m, table.concat(verdicts) .. table.concat(met))
