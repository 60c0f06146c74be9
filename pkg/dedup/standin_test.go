package dedup

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	mini "github.com/alicebob/miniredis/v2/server"
)

// Where no redis-server is at hand an in-process stand-in serves `sink dev` and
// the demo. It is given INFO and CONFIG; all else that the scripts use it must
// have.
func TestScriptsUseNothingThatTheStandInLacks(t *testing.T) {
	m := miniredis.NewMiniRedis()
	must(t, m.StartAddr("127.0.0.1:0"))
	defer m.Close()
	m.Server().SetPreHook(func(p *mini.Peer, cmd string, _ ...string) bool {
		switch strings.ToUpper(cmd) {
		case "INFO":
			p.WriteBulk("redis_version:7.0.0\r\nrun_id:a1\r\ncluster_enabled:0\r\nrole:master\r\nmaster_replid:b2\r\n")
		case "CONFIG":
			p.WriteStrings([]string{"maxmemory-policy", "noeviction", "maxmemory", "0", "hash-max-listpack-entries", "512", "hash-max-listpack-value", "64"})
		default:
			return false
		}
		return true
	})
	s := openAt(t, m.Addr(), nil)
	s.Expect(1)
	src := source0(0)
	b := &Batch{Source: src, First: 10, Nonce: 1, Items: someItems(0, 500, 10)}
	wantVerdicts(t, "new", claimed(t, s, b), strings.Repeat("N", 500))
	b.Nonce = 2
	r := claimed(t, s, b)
	wantVerdicts(t, "again", r, strings.Repeat("M", 500))
	must(t, s.StartRun(t.Context(), src, 10))
	must(t, s.Publish(t.Context(), src, 10, 110, r.Ticket, true))
	other := claimed(t, s, &Batch{Source: source0(1), First: 10, Nonce: 1, Items: someItems(0, 500, 10)})
	wantVerdicts(t, "another partition", other, strings.Repeat("S", 100)+strings.Repeat("D", 400))
	var taken Reply
	must(t, s.TakeOver(t.Context(), source0(1), 3, []GateItem{{testItem(400, 410), other.Owners[other.Answers[400].Owner]}}, &taken))
	wantVerdicts(t, "take-over", &taken, "M")
	held := b.Items[:1]
	held[0].Nonce = 2
	must(t, s.Release(t.Context(), r.Ticket, src, held))
	for i := range b.Items {
		b.Items[i].Nonce = 2
	}
	b.Nonce = 3
	must(t, s.Renew(t.Context(), r.Ticket, b, r))
	wantVerdicts(t, "renewed", r, "X"+strings.Repeat("M", 399)+"X"+strings.Repeat("M", 99))
}
