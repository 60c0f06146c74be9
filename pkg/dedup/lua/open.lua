-- Ends a quarantine, or verify mode, by compare with the epoch. ARGV: 11 '1' to
-- end the quarantine, 12 '1' to end verify mode; neither: to be told of a
-- quarantine. Verify mode outlasts it, since old inserts may still land in it.
local m, no = guard(false)
if not m then return no end
if m.q then
  if ARGV[11] ~= '1' or now - m.q < m.d + m.cutoff then
    return 'Q' .. m.epoch .. ';' .. int(m.q) .. ';' .. int(m.d) .. ';' .. int(m.cutoff) .. ';' .. int(now)
  end
  call('HDEL', M, 'q')
end
if ARGV[12] == '1' then
  call('HDEL', M, 'verify')
  m.verify = '0'
end
return ok(m, '')
