package writer

import (
	"strings"
	"testing"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Tokens and query ids are persistent: another spelling makes every insert that was under way during an upgrade a new one. The cluster, the topic's
// id and a digest of the rows are part of a token (field cases A5, C12).
func TestIdentitiesKeepTheirSpelling(t *testing.T) {
	table := [16]byte{0x61, 0xf0, 0xc4, 0x04, 0x5c, 0xb3, 0x11, 0xe7, 0x90, 0x7b, 0xa6, 0x00, 0x6a, 0xd3, 0xdb, 0xa0}
	source := batcher.Source{Cluster: "lkc/1", Topic: batcher.TopicID{0xab, 15: 0xcd}, Partition: 12}
	r := batcher.Range{First: 1000, Last: 1_099_511_627_775}
	const src = "lkc%2F1/ab0000000000000000000000000000cd/12"
	for got, want := range map[string]string{
		Token(source, r, 0x1f, WholeBatch):                                                 src + ":1000-1099511627775:000000000000001f",
		Token(source, r, 1<<63, 3):                                                         src + ":1000-1099511627775:8000000000000000:3",
		TablePrefix(table):                                                                 "oncesink/61f0c404-5cb3-11e7-907b-a6006ad3dba0/",
		Stem(table, "my group/1", source):                                                  "oncesink/61f0c404-5cb3-11e7-907b-a6006ad3dba0/my%20group%2F1/" + src + "/",
		QueryID(table, "g", source, r, 0x1f, WholeBatch, Attempt{7, 2}):                    "oncesink/61f0c404-5cb3-11e7-907b-a6006ad3dba0/g/" + src + "/1000-1099511627775/000000000000001f/0/7.2",
		QueryID(table, "g", source, r, 0x1f, 4, Attempt{-1, 0}):                            "oncesink/61f0c404-5cb3-11e7-907b-a6006ad3dba0/g/" + src + "/1000-1099511627775/000000000000001f/4/-1.0",
		QueryIDPrefix(table, "g", source, batcher.Range{First: 5, Last: 5}, 1, WholeBatch): "oncesink/61f0c404-5cb3-11e7-907b-a6006ad3dba0/g/" + src + "/5-5/0000000000000001/0/",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	// What is looked for by prefix has to be one, and not one of another partition.
	id := QueryID(table, "g", source, r, 9, 1, Attempt{1, 1})
	if !strings.HasPrefix(id, Stem(table, "g", source)) || !strings.HasPrefix(id, BatchPrefix(table, "g", source, r, 9)) || !strings.HasPrefix(id, QueryIDPrefix(table, "g", source, r, 9, 1)) {
		t.Error(id)
	}
	other := source
	other.Partition = 1
	if strings.HasPrefix(id, Stem(table, "g", other)) {
		t.Error("partition 12 has the stem of partition 1")
	}
}
