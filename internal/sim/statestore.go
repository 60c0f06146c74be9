package sim

import (
	"fmt"
	"reflect"
	"sort"
)

// store writes what the server of the store holds.
func (h *stateHash) store() {
	s := h.w.store
	h.time(s.downTo, instant)
	mem := reflect.ValueOf(s.mem).Elem()
	h.memory(mem.FieldByName("state").Elem(), mem.FieldByName("server").Int())
	if h.w.budget[faultFailover] > 0 {
		for _, p := range s.past {
			h.memory(reflect.ValueOf(p).Elem(), -1)
		}
	}
}

func (h *stateHash) memory(state reflect.Value, server int64) {
	domains := state.FieldByName("domains")
	for _, name := range domains.MapKeys() { // there is one at most
		for i := range domains.MapIndex(name).Len() {
			h.memGroup(domains.MapIndex(name).Index(i).Elem(), server)
		}
	}
	h.buf = append(h.buf, 0xff)
}

func (h *stateHash) memGroup(g reflect.Value, server int64) {
	if m := g.FieldByName("marker"); m.IsNil() {
		h.num(0)
	} else {
		h.num(1)
		h.flag(m.Elem().FieldByName("id").String() == fmt.Sprintf("%d/%d", server, g.FieldByName("lives").Int()))
		if server < 0 {
			h.text(m.Elem().FieldByName("id").String())
		}
		h.walk(m.Elem(), plain)
	}
	names := map[uint64]string{}
	var ids []string
	byName := map[string]reflect.Value{}
	for it := g.FieldByName("ids").MapRange(); it.Next(); {
		names[it.Value().Uint()] = it.Key().String()
		ids = append(ids, it.Key().String())
	}
	for it := g.FieldByName("acked").MapRange(); it.Next(); {
		byName[names[it.Key().Uint()]] = it.Value()
	}
	sort.Strings(ids)
	for _, id := range ids {
		h.text(id)
		if run, ok := byName[id]; ok {
			h.walk(run, plain)
		}
	}
	h.walkMap(g.FieldByName("claims"), func(v reflect.Value) {
		h.text(names[v.FieldByName("entry").FieldByName("id").Uint()])
		h.walk(v, plain)
	})
}
