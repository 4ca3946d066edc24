package app

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis"
)

// MaxStores is the largest number of stores of a process. They share its workers.
const MaxStores = 16

// A namedStore is one of the stores of Options.Store.
type namedStore struct {
	storeName

	name string
}

// storeStart is the space before a further store of Options.Store. The paths of SQLite files may contain other spaces.
var storeStart = regexp.MustCompile(`\s+([^\s:/=]*=)?(sqlite|rediss?(\+\w+)?|unix):`)

// splitStores splits Options.Store into stores, each NAME=URL or URL.
func splitStores(text string) []string {
	var all []string
	text = strings.TrimSpace(text)
	for start := 0; start < len(text); {
		end := len(text)
		if next := storeStart.FindStringIndex(text[start:]); next != nil {
			end = start + next[0]
		}
		all = append(all, text[start:end])
		start = end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\r\n"))
	}
	return all
}

// parseStores parses Options.Store. The main store is the first. Errors never contain a password.
func parseStores(text string) ([]namedStore, error) {
	texts := splitStores(text)
	if len(texts) == 0 {
		return nil, errors.New("is blank")
	}
	if len(texts) > MaxStores {
		return nil, fmt.Errorf("%d stores are more than %d", len(texts), MaxStores)
	}
	var all []namedStore
	for _, text := range texts {
		n, err := parseNamedStore(text)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if o.name == n.name {
				return nil, fmt.Errorf("two stores have the name %s: name each, as in --store main=URL --store eu=URL",
					n.name)
			}
			if o.isSame(n.storeName) {
				return nil, fmt.Errorf("%s and %s are the same store, %s", o.name, n.name, n)
			}
		}
		all = append(all, n)
	}
	main := slices.IndexFunc(all, func(n namedStore) bool { return n.name == job.MainStore })
	if main < 0 {
		return nil,
			errors.New("the store main is missing: it has the tokens and namespaces, so name one of the stores main")
	}
	return slices.Insert(slices.Delete(slices.Clone(all), main, main+1), 0, all[main]), nil
}

// parseNamedStore parses NAME=URL, or the URL of the main store.
func parseNamedStore(text string) (namedStore, error) {
	name, url, named := strings.Cut(text, "=")
	if !named || strings.ContainsAny(name, ":/") {
		name, url = job.MainStore, text
	}
	if !job.IsNamespace(name) {
		return namedStore{}, fmt.Errorf("the name %q is not 1 to 32 of a-z 0-9 and -, not beginning with -", name)
	}
	parsed, err := parseStore(url)
	return namedStore{parsed, name}, err
}

// isSame reports whether both are spelled as the same store.
func (n storeName) isSame(o storeName) bool {
	return n.url == o.url && filepath.Clean(n.file) == filepath.Clean(o.file)
}

// listStores returns the stores as the log shows them.
func listStores(stores []namedStore) string {
	if len(stores) == 1 {
		return stores[0].String()
	}
	all := make([]string, len(stores))
	for i, n := range stores {
		all[i] = n.name + "=" + n.String()
	}
	return strings.Join(all, " ")
}

// Shards is the number of shards of stores by name. Its text is a number, for the main store, or NAME=N,….
type Shards map[string]int

// UnmarshalText parses the text of Shards.
func (s *Shards) UnmarshalText(text []byte) error {
	shards := make(Shards)
	for part := range strings.SplitSeq(string(text), ",") {
		name, number, named := strings.Cut(part, "=")
		if !named {
			name, number = job.MainStore, part
		}
		n, err := strconv.Atoi(number)
		if _, twice := shards[name]; err != nil || twice {
			return fmt.Errorf("%q is not a number, or NAME=N for each store, such as main=1,eu=16", text)
		}
		shards[name] = n
	}
	*s = shards
	return nil
}

// String returns NAME=N,…, sorted.
func (s Shards) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprintf("%s=%d", name, s[name]))
	}
	return strings.Join(all, ",")
}

// StoreNames returns Store without passwords: the URL of the only store, or NAME=URL of each. It is empty if Store is
// not valid.
func (o Options) StoreNames() string {
	stores, err := parseStores(o.withDefaults().Store)
	if err != nil {
		return ""
	}
	return listStores(stores)
}

// checkStores returns the problems of Store, Shards, RedisPrefix and RedisWait.
func (o Options) checkStores() (errs []error) {
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	stores, err := parseStores(o.Store)
	if err != nil {
		problem("store: %w", err)
	}
	for name, n := range o.Shards {
		is := slices.IndexFunc(stores, func(s namedStore) bool { return s.name == name })
		switch {
		case n < 0 || n > job.MaxShards:
			problem("shards: %d is not between 1 and %d", n, job.MaxShards)
		case err == nil && is < 0:
			problem("shards: there is no store %s", name)
		case err == nil && stores[is].file != "" && n > 1:
			problem("shards: a sqlite store has one shard, not %d", n)
		}
	}
	onRedis := slices.ContainsFunc(stores, func(n namedStore) bool { return n.file == "" })
	if err == nil && !onRedis && (o.RedisPrefix != "" || o.RedisWait != RedisWait{}) {
		problem("redis-prefix, redis-wait: cannot be combined with a sqlite store")
	} else if err := redis.CheckPrefix(o.RedisPrefix); err != nil {
		problem("redis-prefix: %w", err)
	}
	return errs
}
