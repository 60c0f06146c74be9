-- ARGV: 11 body. Item: field 10. Verdicts: 3 settled (for good, or not taken and
-- the owner's run covers it), 2 not, 6 absent; the entries of 2 and 3 follow.
local m, no = guard(false)
if not m then return no end
local secs, pos = sections(m, ARGV[11], false)
if not secs then return pos end
local verdicts, met = {}, {}
walk(secs, ARGV[11], pos, 10, function(_, _, v)
  if not v or v == released then
    verdicts[#verdicts + 1] = '6'
    return
  end
  local id, flags, offset = owner(v)
  verdicts[#verdicts + 1] = (sub(v, 13, 16) == done or flags < 2 and covered(id, offset)) and '3' or '2'
  met[#met + 1] = v
end)
return ok(m, table.concat(verdicts) .. table.concat(met))
