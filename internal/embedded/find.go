package embedded

import (
	"fmt"
	"os"
	"path/filepath"
)

// FindEngineLib finds libchdb.so: the given path, $ONCESINK_CHDB_LIB, $ONCESINK_CACHE, a .cache folder beside or above the working folder or
// the program, the user's cache folder; in this order.
func FindEngineLib(given string) (string, error) {
	const cure = "`make setup` (or scripts/get-engine.sh) fetches it by npm; elsewhere `npm pack @chdb/lib-linux-x64-gnu@26.7.3-stable.1`, unpack the archive and set ONCESINK_CHDB_LIB to its libchdb.so"
	for _, named := range []struct{ what, path string }{{"the given engine library", given}, {"ONCESINK_CHDB_LIB", os.Getenv("ONCESINK_CHDB_LIB")}} {
		if named.path == "" {
			continue
		}
		if !isFile(named.path) {
			return "", fmt.Errorf("find engine: %s names %s, which is no readable file: %s", named.what, named.path, cure)
		}
		return filepath.Abs(named.path)
	}
	if path := inCache(filepath.Join("engine", "libchdb.so")); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("find engine: the ClickHouse engine (libchdb.so, 26.7 or later) was not found: %s", cure)
}

// FindCached is the path of a file that the installers in scripts/ put into the cache, or "".
func FindCached(rel string) string { return inCache(rel) }

func inCache(rel string) string {
	for _, dir := range cacheDirs() {
		if path := filepath.Join(dir, rel); isFile(path) {
			return path
		}
	}
	return ""
}

func cacheDirs() []string {
	var dirs []string
	if dir := os.Getenv("ONCESINK_CACHE"); dir != "" {
		dirs = append(dirs, dir)
	}
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if self, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(self))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			dirs = append(dirs, filepath.Join(dir, ".cache"))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "oncesink"))
	}
	return dirs
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
