-- Ends a quarantine, or verify mode, by compare with the epoch. ARGV: 10 '1' to
-- end the quarantine, 11 '1' to end verify mode.
local m, no = guard(false)
if not m then return no end
if ARGV[10] == '1' and m.q then
  if now - m.q < m.d + m.cutoff then
    return 'Q' .. m.epoch .. ';' .. int(m.q) .. ';' .. int(m.d) .. ';' .. int(m.cutoff) .. ';' .. int(now)
  end
  call('HDEL', M, 'q')
end
if ARGV[11] == '1' then
  call('HDEL', M, 'verify')
  m.verify = '0'
end
return ok(m, '')
