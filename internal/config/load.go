package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileBytes is far above any real configuration: whoever names a data file by mistake gets a sentence, not a minute of parsing.
const maxFileBytes = 1 << 20

// Load reads and validates a file. Every failure is an *Invalid.
func Load(path string, env Lookup) (*Config, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, invalidFile(path, "is a folder; name the file in it")
	}
	if err == nil && info.Size() > maxFileBytes {
		return nil, invalidFile(path, fmt.Sprintf("has %d bytes: that is no configuration", info.Size()))
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, invalidFile(path, "does not exist; name the configuration with -c, examples/settlements.yaml is one to start from")
	case errors.Is(err, fs.ErrPermission):
		return nil, invalidFile(path, "can't be read by this user: mind its owner and mode")
	case err != nil:
		return nil, invalidFile(path, "can't be read: "+err.Error())
	}
	return Parse(path, data, env)
}

func invalidFile(path, message string) error {
	return &Invalid{File: path, Problems: []Problem{{Message: message}}}
}

// Parse reads and validates the text of a file; file is only its name, for the messages.
func Parse(file string, data []byte, env Lookup) (*Config, error) {
	body, err := document(file, data)
	if err != nil {
		return nil, err
	}
	c := Default()
	c.file = file
	d := newDecoder(env)
	d.decode(body, c)
	c.source = d.source
	if err := d.err(file); err != nil {
		return nil, err // half a configuration can't be judged: what is missing may only be misspelt
	}
	for _, list := range []*[]string{&c.Kafka.Brokers, &c.ClickHouse.Addresses, &c.Redis.Addresses} {
		*list = splitAtCommas(*list)
	}
	if c.Kafka.SASL != nil {
		c.Kafka.SASL.env = env
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// document parses the text into the one mapping that it must be.
// Messages are built from the parser's own words without its excerpt of the source, which could show a password.
func document(file string, data []byte) (ast.Node, error) {
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // duplicates are found while decoding, with all the others
	if err != nil {
		p := Problem{Message: "is not YAML"}
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) && syntax.Token != nil {
			p.Line = syntax.Token.Position.Line
			p.Message = "is not YAML: " + syntax.Message
			if bareVariable(data, p.Line) {
				p.Message += "; between { } or [ ] a ${VAR} needs quotes: \"${VAR}\""
			}
		}
		return nil, &Invalid{File: file, Problems: []Problem{p}}
	}
	var bodies []*ast.DocumentNode
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc)
		}
	}
	switch {
	case len(bodies) == 0:
		return nil, invalidFile(file, "is empty; examples/settlements.yaml is one to start from")
	case len(bodies) > 1:
		line := bodies[1].Body.GetToken().Position.Line
		return nil, &Invalid{File: file, Problems: []Problem{{Line: line, Message: "a second document starts here; a configuration is one"}}}
	}
	return bodies[0].Body, nil
}

// bareVariable tells whether that line (or the one before, where parsers notice late) has an unquoted ${ inside a flow collection.
func bareVariable(data []byte, line int) bool {
	lines := strings.Split(string(data), "\n")
	for _, n := range []int{line - 1, line - 2} {
		if n < 0 || n >= len(lines) {
			continue
		}
		before, _, ok := strings.Cut(lines[n], "${")
		if ok && strings.ContainsAny(before, "{[") && !strings.HasSuffix(before, `"`) && !strings.HasSuffix(before, "'") {
			return true
		}
	}
	return false
}

// splitAtCommas lets one variable hold several addresses: brokers: ["${BROKERS}"].
func splitAtCommas(list []string) []string {
	var out []string
	for _, item := range list {
		for part := range strings.SplitSeq(item, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}
