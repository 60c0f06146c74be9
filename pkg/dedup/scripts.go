package dedup

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	_ "embed"
	"encoding/hex"
	"regexp"
	"strings"
)

//go:embed lua/guard.lua
var luaGuard string

//go:embed lua/places.lua
var luaPlaces string

//go:embed lua/claim.lua
var luaClaim string

//go:embed lua/renew.lua
var luaRenew string

//go:embed lua/find.lua
var luaFind string

//go:embed lua/take.lua
var luaTake string

//go:embed lua/release.lua
var luaRelease string

//go:embed lua/acked.lua
var luaAcked string

//go:embed lua/publish.lua
var luaPublish string

//go:embed lua/names.lua
var luaNames string

//go:embed lua/raise.lua
var luaRaise string

//go:embed lua/open.lua
var luaOpen string

// script is one operation's whole text, and the name by which Redis knows it.
type script struct{ text, sha any }

var scripts = [ops]script{
	opClaim:   newScript(luaGuard, luaPlaces, luaClaim),
	opRenew:   newScript(luaGuard, luaPlaces, luaRenew),
	opFind:    newScript(luaGuard, luaPlaces, luaFind),
	opTake:    newScript(luaGuard, luaPlaces, luaTake),
	opRelease: newScript(luaGuard, luaPlaces, luaRelease),
	opAcked:   newScript(luaGuard, luaAcked),
	opPublish: newScript(luaGuard, luaPublish),
	opNames:   newScript(luaGuard, luaNames),
	opRaise:   newScript(luaGuard, luaRaise),
	opOpen:    newScript(luaGuard, luaOpen),
}

var luaComment = regexp.MustCompile(`(?m)^\s*--.*\n`)

func newScript(parts ...string) script {
	text := luaComment.ReplaceAllString(strings.Join(parts, "\n"), "")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}
