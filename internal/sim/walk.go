package sim

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"unsafe"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

var (
	workerType  = reflect.TypeFor[*worker]()
	processType = reflect.TypeFor[*process]()
	worldType   = reflect.TypeFor[*world]()
)

// walk writes a value, of fields that nobody exports too.
func (h *stateHash) walk(v reflect.Value, means meaning) {
	switch v.Kind() {
	case reflect.Invalid:
		h.num(0)
	case reflect.Bool:
		h.flag(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch means {
		case instant, moment, until:
			h.time(v.Int(), means)
		case whether:
			if h.strict {
				h.num(uint64(v.Int()))
			} else {
				h.flag(v.Int() != 0)
			}
		default:
			h.num(uint64(v.Int()))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		switch means {
		case nonce:
			h.named(h.nonces, v.Uint())
		case epoch, byGroup:
			h.named(h.epochs, v.Uint())
		case await:
			if h.strict {
				h.num(v.Uint())
			} else {
				h.flag(v.Uint() != 0)
			}
		default:
			h.num(v.Uint())
		}
	case reflect.String:
		h.text(v.String())
	case reflect.Interface:
		if v.IsNil() {
			h.num(0)
			return
		}
		h.text(v.Elem().Type().String())
		h.walk(v.Elem(), means)
	case reflect.Pointer:
		h.pointer(v)
	case reflect.Slice:
		h.flag(v.IsNil())
		h.num(uint64(v.Len()))
		for i := range v.Len() {
			h.walk(v.Index(i), means)
		}
	case reflect.Array:
		n := v.Len()
		if means == byGroup {
			n = h.groups
		}
		for i := range n {
			h.walk(v.Index(i), means)
		}
	case reflect.Map:
		h.walkMap(v, func(e reflect.Value) { h.walk(e, means) })
	case reflect.Struct:
		h.fields(v, means)
	case reflect.Func:
		// What it goes by is written where it is kept.
	default:
		panic(fmt.Sprintf("a %s can't be hashed", v.Type()))
	}
}

// pointer: what several point to is written once, so that it matters whether
// they point to the same.
func (h *stateHash) pointer(v reflect.Value) {
	switch {
	case v.IsNil():
		h.num(0)
		return
	case v.Type() == workerType:
		h.workerRef((*worker)(v.UnsafePointer()))
		return
	case v.Type() == processType:
		h.processRef((*process)(v.UnsafePointer()))
		return
	case v.Type() == worldType:
		return
	}
	at := v.Pointer()
	if name, ok := h.seen[at]; ok {
		h.num(name + 2)
		return
	}
	h.seen[at] = uint64(len(h.seen))
	h.num(1)
	h.walk(v.Elem(), plain)
}

func (h *stateHash) fields(v reflect.Value, means meaning) {
	switch name := v.Type().String(); {
	case name == "time.Time":
		// Without a monotonic part: seconds since year 1, and nanoseconds.
		if s := v.FieldByName("ext").Int(); s == 0 {
			h.num(0)
		} else {
			h.time((s-62135596800)*1000+int64(v.FieldByName("wall").Uint()/1_000_000), means)
		}
		return
	case h.strict:
		if name == "dedup.Store" {
			h.walk(v.FieldByName("state"), plain)
			h.walk(v.FieldByName("sources"), plain)
			return
		}
	case name == "pipeline.Ref":
		lane := v.Field(0).Uint()
		h.num(lane)
		h.flag(h.worker != nil && !h.worker.gone && refSeq(h.worker.m, pipeline.Lane(lane)) == v.Field(1).Uint())
		return
	case name == "sim.lease":
		l := lease{int(v.Field(0).Int()), int32(v.Field(1).Int())}
		h.lease(l, h.worker)
		return
	case name == "dedup.Store":
		h.walk(v.FieldByName("state").Index(0), plain)
		h.walk(v.FieldByName("sources"), plain)
		return
	case name == "sim.sent":
		s := (*sent)(unsafe.Pointer(v.UnsafeAddr())) //nolint:gosec // reads its own field
		h.flag(h.worker != nil && h.worker.proc.alive && h.worker.proc.born == s.lives)
	}
	unused := h.unused(v)
	plan, ok := h.plans[v.Type()]
	if !ok {
		name := v.Type().String() + "."
		for i := range v.NumField() {
			if m := meanings[name+v.Type().Field(i).Name]; m != scratch && (m != skipped || h.strict) {
				plan = append(plan, fieldPlan{i, m, v.Type().Field(i).Name})
			}
		}
		h.plans[v.Type()] = plan
	}
	for _, f := range plan {
		if slices.Contains(unused, f.name) {
			continue
		}
		h.walk(v.Field(f.index), f.means)
	}
}

// walkMap writes a map in the order of its keys, which hold nothing that is
// named by order.
func (h *stateHash) walkMap(v reflect.Value, element func(reflect.Value)) {
	if v.Len() == 0 {
		h.num(0)
		return
	}
	type item struct {
		key string
		v   reflect.Value
	}
	list := make([]item, 0, v.Len())
	start := len(h.buf)
	for it := v.MapRange(); it.Next(); {
		h.walk(it.Key(), plain)
		list = append(list, item{string(h.buf[start:]), it.Value()})
		h.buf = h.buf[:start]
	}
	sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
	h.num(uint64(len(list)))
	for _, it := range list {
		h.buf = append(h.buf, it.key...)
		element(it.v)
	}
}
