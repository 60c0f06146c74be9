package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// What a client may say before it has logged in, and how long it may take for each of the two packets: the engine's own patience is 10 s.
const (
	prologueMost     = 64 << 10
	prologuePatience = 5 * time.Second
	askPatience      = 10 * time.Second
)

var errNoHello = errors.New("not a client of the native protocol")

// prologue reads what a client says before its first query, and keeps the bytes.
type prologue struct {
	from *bufio.Reader
	raw  []byte
}

func (p *prologue) number() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := p.from.ReadByte()
		if err != nil {
			return 0, err
		}
		p.raw = append(p.raw, b)
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errNoHello
}

func (p *prologue) text() (string, error) {
	n, err := p.number()
	if err != nil {
		return "", err
	}
	if n > uint64(prologueMost-min(len(p.raw), prologueMost)) {
		return "", errNoHello
	}
	at := len(p.raw)
	p.raw = append(p.raw, make([]byte, n)...)
	_, err = io.ReadFull(p.from, p.raw[at:])
	return string(p.raw[at:]), err
}

// take hands over what was read.
func (p *prologue) take() []byte {
	raw := p.raw
	p.raw = nil
	return raw
}

// hello is the first packet: who wants in, where to, and in which version.
func (p *prologue) hello() (h proto.ClientHello, err error) {
	code, err := p.number()
	if err != nil {
		return h, err
	}
	if code != uint64(proto.ClientCodeHello) {
		return h, errNoHello
	}
	if h.Name, err = p.text(); err != nil {
		return h, err
	}
	for _, v := range []*int{&h.Major, &h.Minor, &h.ProtocolVersion} {
		n, err := p.number()
		if err != nil {
			return h, err
		}
		*v = int(min(n, 1<<31-1))
	}
	for _, v := range []*string{&h.Database, &h.User, &h.Password} {
		if *v, err = p.text(); err != nil {
			return h, err
		}
	}
	return h, nil
}

// web tells that a browser or its like knocked, which gets told so.
func (p *prologue) web() bool { return len(p.raw) > 0 && (p.raw[0] == 'G' || p.raw[0] == 'P') }

const wrongPort = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis port speaks ClickHouse's native protocol; its HTTP port is another one.\n"

// Versions of the protocol in which the second packet gained a field.
const (
	versionQuotaKey = 54458
	versionChunked  = 54470
	versionReplicas = 54471
)

// addendum is the second packet: a quota's key, how packets are framed (the engine only does it the old way), a version.
func (p *prologue) addendum(version int) error {
	if version < versionQuotaKey {
		return nil
	}
	if _, err := p.text(); err != nil {
		return err
	}
	if version >= versionChunked {
		for range 2 {
			framing, err := p.text()
			if err != nil {
				return err
			}
			if framing != "notchunked" && !strings.HasSuffix(framing, "_optional") {
				return errNoHello
			}
		}
	}
	if version >= versionReplicas {
		_, err := p.number()
		return err
	}
	return nil
}

// doorman asks the engine over HTTP whether a client may log in, where a no does no harm.
type doorman struct {
	port     int
	patience time.Duration // with each packet
	client   *http.Client
}

func newDoorman(port int) *doorman {
	// Without keep-alive: an idle connection of ours would delay the engine's end by 5 s.
	return &doorman{port: port, patience: prologuePatience, client: &http.Client{Timeout: askPatience, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// refusal is what the engine has against a client, nil: nothing. The error is that it couldn't be asked.
func (d *doorman) refusal(h proto.ClientHello) (*proto.Exception, error) {
	if h.User == "" || strings.HasPrefix(h.User, " ") {
		// The protocol's marks for logins of servers, and those by keys and tokens, are names that begin with a space.
		return &proto.Exception{Code: proto.ErrAuthenticationFailed, Name: "DB::Exception", Message: "DB::Exception: log in with a user's name and a password: this engine has no other logins"}, nil
	}
	q := url.Values{"user": {h.User}, "password": {h.Password}}
	if h.Database != "" {
		q.Set("database", h.Database)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/?%s", d.port, q.Encode()), strings.NewReader("SELECT 1 /* may this client log in? */"))
	if err != nil {
		return nil, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return nil, err
	}
	code, err := strconv.ParseInt(resp.Header.Get("X-ClickHouse-Exception-Code"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("http status %d: %s", resp.StatusCode, said)
	}
	return &proto.Exception{Code: proto.Error(code), Name: "DB::Exception", Message: nativeText(string(said))}, nil
}

var webFrame = regexp.MustCompile(`(?s)^Code: \d+\. (.*?)(?: \([A-Z_]+\))?(?: \(version [^()]*(?:\([^()]*\))?\))?\s*$`)

// nativeText is an error of the HTTP protocol as the native one words it: without the code and the version around.
func nativeText(said string) string {
	if m := webFrame.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return strings.TrimSpace(said)
}

// exceptionPacket is how a server says no.
func exceptionPacket(ex *proto.Exception) []byte {
	var b proto.Buffer
	proto.ServerCodeException.Encode(&b)
	ex.EncodeAware(&b, 0)
	return b.Buf
}
