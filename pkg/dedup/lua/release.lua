-- ARGV: 11 owner, 12 body, 13 what becomes of the claim: r released, s settled
-- for good. Item: field 10, offset 5, nonce 4.
-- Verdicts: 1 done, 5 held by another (its entry follows), 6 absent.
local m, no = guard(false)
if not m then return no end
local body = ARGV[12]
-- Not refused for want of memory: see publish.lua.
call('PERSIST', M)
local secs, pos = sections(m, body, false)
if not secs then return pos end
local id = tonumber(call('HGET', P .. 'i', ARGV[11]) or -1)
local verdicts, met = {}, {}
walk(secs, body, pos, 19, function(p, field, v, key)
  if not v or v == released then
    verdicts[#verdicts + 1] = '6'
    return
  end
  if owner(v) == id and sub(v, 4, 8) == sub(body, p + 10, p + 14) and sub(v, 13, 16) == sub(body, p + 15, p + 18) then
    call('HSET', key, field, ARGV[13] == 's' and sub(v, 1, 12) .. done or released)
    verdicts[#verdicts + 1] = '1'
    return
  end
  verdicts[#verdicts + 1] = '5'
  met[#met + 1] = v
end)
return ok(m, table.concat(verdicts) .. table.concat(met))
