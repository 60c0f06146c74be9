package batcher

import "testing"

func TestNamesWithSlashesDoNotCollideInTokens(t *testing.T) {
	id := TopicID{0xde, 0xad, 15: 1}
	a := Source{Cluster: "a/b", Topic: id, Partition: 1}
	b := Source{Cluster: "a%2Fb", Topic: id, Partition: 1}
	if a.String() == b.String() {
		t.Fatalf("both read %s", a)
	}
	for _, s := range []Source{a, b, {Cluster: "MkU3OEVBNTcwNTJENDM2Qk", Topic: id, Partition: 0}} {
		got, err := ParseSource(s.String())
		if err != nil || got != s {
			t.Errorf("%s came back as %v, %v", s, got, err)
		}
	}
	if got, want := a.String(), "a%2Fb/dead0000000000000000000000000001/1"; got != want {
		t.Errorf("the persistent form is %s, want %s", got, want)
	}
}

func TestBrokenSourceTextIsRefused(t *testing.T) {
	for _, text := range []string{"", "a/b", "a/zz/1", "a/dead/1", "a%2/00000000000000000000000000000000/1", "a/00000000000000000000000000000000/x", "a/00000000000000000000000000000000/1/2"} {
		if s, err := ParseSource(text); err == nil {
			t.Errorf("%q was read as %s", text, s)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("plain")
	f.Add("a/b%2F ü")
	f.Fuzz(func(t *testing.T, name string) {
		got, err := Unescape(Escape(name))
		if err != nil || got != name {
			t.Fatalf("%q came back as %q, %v", name, got, err)
		}
	})
}
