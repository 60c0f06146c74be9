// Package deadletter writes the records that a sink can't keep to a Kafka
// topic, with the reason, and reads them back.
//
// Contract: Produce returns nil only when every letter is acknowledged by all
// in-sync replicas. The topic is at-least-once: a letter may be there twice;
// source and offset identify it. Key, value, headers and timestamp of the
// original come back from Parse exactly, unless the letter says that it had to
// be shortened because the topic takes no message of that size.
//
// Not promised: order between letters of different source partitions.
package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The headers that a letter adds behind those of the original. Reason comes
// first: everything before its last occurrence belongs to the original, which
// may itself have been a dead letter.
const (
	HeaderReason           = "x-oncesink-reason" // class: a word
	HeaderDetail           = "x-oncesink-detail" // for people, at most MaxDetail bytes
	HeaderTopic            = "x-oncesink-topic"  // name of the source topic
	HeaderPartition        = "x-oncesink-partition"
	HeaderOffset           = "x-oncesink-offset"
	HeaderSource           = "x-oncesink-source"    // cluster/topic id/partition
	HeaderTimestamp        = "x-oncesink-timestamp" // of the original, ms since 1970
	HeaderGroup            = "x-oncesink-group"
	HeaderVersion          = "x-oncesink-version"           // of the sink
	HeaderOwnerGroup       = "x-oncesink-owner-group"       // conflicts: who owns the key
	HeaderOwnerSource      = "x-oncesink-owner-source"      //
	HeaderOwnerOffset      = "x-oncesink-owner-offset"      //
	HeaderFingerprint      = "x-oncesink-fingerprint"       // conflicts: of this record, 8 hex digits
	HeaderOwnerFingerprint = "x-oncesink-owner-fingerprint" // conflicts: of the owner's
	HeaderTruncated        = "x-oncesink-truncated"         // size of the value before it was cut
	HeaderStripped         = "x-oncesink-stripped"          // number of original headers left out, size of the key before it was cut

	headerPrefix = "x-oncesink-"
)

// MaxDetail bounds the detail, so that a reason that quotes the data stays small.
const MaxDetail = 1024

// Letter is a dead letter: an original record, where it was, and why it is here.
type Letter struct {
	Topic     string // the dead-letter topic
	Key       []byte // nil: null
	Value     []byte // nil: null
	Headers   []kgo.RecordHeader
	Reason    string // class: undecodable, conflict, rejected, …
	Detail    string
	From      string // name of the source topic
	Source    batcher.Source
	Offset    int64
	Timestamp time.Time // of the original, ms
	Group     string
	Version   string
	Conflict  *Conflict // set when another record owns the key with other content

	// Set by what had to be shortened to fit (see Produce); 0: nothing.
	ValueSize       int // size of the original value, of which Value is the beginning
	StrippedHeaders int // original headers left out
	KeySize         int // size of the original key, of which Key is the beginning
}

// Conflict is the other side of a conflict.
type Conflict struct {
	Owner            batcher.Owner
	Fingerprint      uint32 // of this record
	OwnerFingerprint uint32
}

func (l *Letter) String() string {
	return fmt.Sprintf("dead letter for %s/%d offset %d (%s) to %s", l.From, l.Source.Partition, l.Offset, l.Reason, l.Topic)
}

// record makes the Kafka record. Its timestamp is the time of writing, so that
// the retention of the dead-letter topic counts from then. It copies: kgo may
// hold it longer than Produce waits, and the original's memory is pooled.
func (l *Letter) record() *kgo.Record {
	r := &kgo.Record{Topic: l.Topic, Partition: l.Source.Partition, Key: bytes.Clone(l.Key), Value: bytes.Clone(l.Value)}
	r.Headers = make([]kgo.RecordHeader, 0, len(l.Headers)+16)
	for _, h := range l.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: strings.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	add := func(key, value string) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	add(HeaderReason, l.Reason)
	add(HeaderDetail, clip(l.Detail))
	add(HeaderTopic, l.From)
	add(HeaderPartition, strconv.Itoa(int(l.Source.Partition)))
	add(HeaderOffset, strconv.FormatInt(l.Offset, 10))
	add(HeaderSource, l.Source.String())
	add(HeaderTimestamp, strconv.FormatInt(l.Timestamp.UnixMilli(), 10))
	add(HeaderGroup, l.Group)
	add(HeaderVersion, l.Version)
	if c := l.Conflict; c != nil {
		add(HeaderOwnerGroup, c.Owner.Group)
		add(HeaderOwnerSource, c.Owner.Source.String())
		add(HeaderOwnerOffset, strconv.FormatInt(c.Owner.Offset, 10))
		add(HeaderFingerprint, fmt.Sprintf("%08x", c.Fingerprint))
		add(HeaderOwnerFingerprint, fmt.Sprintf("%08x", c.OwnerFingerprint))
	}
	if l.ValueSize > 0 {
		add(HeaderTruncated, strconv.Itoa(l.ValueSize))
	}
	if l.StrippedHeaders > 0 || l.KeySize > 0 {
		add(HeaderStripped, fmt.Sprintf("%d,%d", l.StrippedHeaders, l.KeySize))
	}
	return r
}

// clip makes text valid UTF-8 of at most MaxDetail bytes.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxDetail {
		return text
	}
	const more = "…"
	end := MaxDetail - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// Parse reads a record of a dead-letter topic. Headers of later versions are
// passed over. An error says what makes it no letter of ours.
func Parse(r *kgo.Record) (Letter, error) {
	start := -1
	for i, h := range r.Headers {
		if h.Key == HeaderReason {
			start = i
		}
	}
	where := fmt.Sprintf("%s/%d offset %d", r.Topic, r.Partition, r.Offset)
	if start < 0 {
		return Letter{}, fmt.Errorf("%s is no dead letter: it has no header %s", where, HeaderReason)
	}
	l := Letter{Topic: r.Topic, Key: r.Key, Value: r.Value}
	if start > 0 {
		l.Headers = r.Headers[:start:start]
	}
	p := parser{have: map[string]string{}}
	for _, h := range r.Headers[start:] {
		if !strings.HasPrefix(h.Key, headerPrefix) {
			return Letter{}, fmt.Errorf("%s is no dead letter of this sink: header %q stands among its own", where, h.Key)
		}
		p.have[h.Key] = string(h.Value)
	}
	l.Reason, l.Detail, l.From = p.text(HeaderReason), p.text(HeaderDetail), p.text(HeaderTopic)
	l.Group, l.Version = p.text(HeaderGroup), p.text(HeaderVersion)
	l.Offset = p.number(HeaderOffset, 63)
	l.Timestamp = time.UnixMilli(p.signed(HeaderTimestamp)).UTC()
	l.Source = p.source(HeaderSource)
	if n := p.number(HeaderPartition, 31); p.err == nil && int32(n) != l.Source.Partition {
		p.err = fmt.Errorf("headers %s and %s disagree", HeaderPartition, HeaderSource)
	}
	if _, ok := p.have[HeaderOwnerSource]; ok {
		l.Conflict = &Conflict{
			Owner:            batcher.Owner{Group: p.text(HeaderOwnerGroup), Source: p.source(HeaderOwnerSource), Offset: p.number(HeaderOwnerOffset, 63)},
			Fingerprint:      p.hex(HeaderFingerprint),
			OwnerFingerprint: p.hex(HeaderOwnerFingerprint),
		}
	}
	if _, ok := p.have[HeaderTruncated]; ok {
		l.ValueSize = int(p.number(HeaderTruncated, 31))
	}
	if text, ok := p.have[HeaderStripped]; ok {
		headers, key, _ := strings.Cut(text, ",")
		p.have["headers left out"], p.have["key size"] = headers, key
		l.StrippedHeaders, l.KeySize = int(p.number("headers left out", 31)), int(p.number("key size", 31))
	}
	if p.err != nil {
		return Letter{}, fmt.Errorf("%s is a damaged dead letter: %w", where, p.err)
	}
	return l, nil
}

// parser reads header values and keeps the first error.
type parser struct {
	have map[string]string
	err  error
}

func (p *parser) fail(name string, err error) {
	if p.err == nil {
		p.err = fmt.Errorf("header %s: %w", name, err)
	}
}

func (p *parser) text(name string) string {
	v, ok := p.have[name]
	if !ok {
		p.fail(name, errors.New("missing"))
	}
	return v
}

func (p *parser) number(name string, bits int) int64 {
	v, err := strconv.ParseUint(p.text(name), 10, bits)
	if err != nil {
		p.fail(name, err)
	}
	return int64(v)
}

func (p *parser) signed(name string) int64 {
	v, err := strconv.ParseInt(p.text(name), 10, 64)
	if err != nil {
		p.fail(name, err)
	}
	return v
}

func (p *parser) hex(name string) uint32 {
	v, err := strconv.ParseUint(p.text(name), 16, 32)
	if err != nil {
		p.fail(name, err)
	}
	return uint32(v)
}

func (p *parser) source(name string) batcher.Source {
	s, err := batcher.ParseSource(p.text(name))
	if err != nil {
		p.fail(name, err)
	}
	return s
}
