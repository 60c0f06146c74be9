-- ARGV: 11 owner, 12 nonce, 13 body, 14.. the owners that are expected.
-- Item: field 10, offset 5, fingerprint 4, index of the expected owner 2, its
-- taken flag 1, its offset 5, its nonce 4. Verdicts: 1 Mine, 5 Changed (the
-- entry follows), 6 absent.
local m, no = guard(true)
if not m then return no end
local body, nonce = ARGV[13], ARGV[12]
local secs, pos = sections(m, body, true)
if not secs then return pos end
local id = intern(ARGV[11])
if not id then return redis.error_reply(full) end
local ours = prefix(id, 2)
local expected = {}
for i = 14, #ARGV do expected[i - 14] = tonumber(call('HGET', P .. 'i', ARGV[i]) or -1) end
local verdicts, met = {}, {}
walk(secs, body, pos, 31, function(p, field, v, key, ends)
  if not v or v == released then
    verdicts[#verdicts + 1] = '6'
    return
  end
  local oid, flags = owner(v)
  local a, b, t = byte(body, p + 19, p + 21)
  local again = sub(v, 1, 3) == ours and sub(v, 4, 8) == sub(body, p + 10, p + 14) and sub(v, 13, 16) == nonce
  local same = oid == expected[a * 256 + b] and floor(flags / 2) == t and sub(v, 4, 8) == sub(body, p + 22, p + 26)
    and sub(v, 13, 16) == sub(body, p + 27, p + 30)
  if not again and not same then
    verdicts[#verdicts + 1] = '5'
    met[#met + 1] = v
    return
  end
  verdicts[#verdicts + 1] = '1'
  call('HSET', key, field, ours .. sub(body, p + 10, p + 18) .. nonce)
  call('PEXPIREAT', key, ends)
end)
return ok(m, table.concat(verdicts) .. table.concat(met))
