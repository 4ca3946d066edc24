package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store/redis/connect"
)

// calls are a call of every command that Ringback makes, with KEY for a key. They are checked against the user's rights
// and not made.
const calls = `ping
info
config get maxmemory
eval x 0
evalsha x 0
time
get KEY
set KEY x
del KEY
unlink KEY
exists KEY
pexpire KEY 1
pttl KEY
rename KEY KEY
hget KEY x
hmget KEY x
hset KEY x x
hsetnx KEY x x
hdel KEY x
hexists KEY x
hgetall KEY
hlen KEY
hscan KEY 0
hstrlen KEY x
llen KEY
lpop KEY
blpop KEY 0
lpos KEY x
lrange KEY 0 1
lrem KEY 0 x
ltrim KEY 0 1
rpush KEY x
zadd KEY 1 x
zcard KEY
zcount KEY 0 1
zmscore KEY x
zrange KEY 0 1
zrangebyscore KEY 0 1
zrangebylex KEY - +
zrem KEY x
zscan KEY 0
zscore KEY x`

// optional are commands without which a part of Ringback does not work, as docs/redis.md says.
var optional = map[string]bool{
	"info": true, "config|get": true, "hscan": true, "zscan": true, "zmscore": true, "lpos": true, "unlink": true,
}

// needed returns the calls that the program makes to a server.
func (f *facts) needed(c *redis.Client) []string {
	all := strings.Split(calls, "\n")
	if f.cluster {
		all = append(all, "cluster slots", "asking")
	}
	if c.Options().DB != 0 {
		all = append(all, "select 1")
	}
	switch {
	case f.Wait.Fsync:
		all = append(all, "waitaof 1 0 1")
	case f.Wait.Replicas > 0:
		all = append(all, "wait 0 1")
	}
	return all
}

// rights are what the user lacks.
type rights struct {
	missing  []string // commands, subcommands as in config|get
	optional []string
}

// permitted runs in Redis and returns the numbers of the calls that the user may not make; false: Redis is older than
// version 7.
const permitted = `
if not redis.acl_check_cmd then return false end
local denied = {}
for i, call in ipairs(cjson.decode(ARGV[1])) do
  local known, allowed = pcall(redis.acl_check_cmd, unpack(call))
  if known and not allowed then denied[#denied + 1] = i end
end
return denied`

// readRights checks the user's rights for calls on keys; nil: the server cannot tell.
func readRights(ctx context.Context, c *redis.Client, calls, keys []string) (*rights, error) {
	var lists [][]string
	var names []string
	for _, call := range calls {
		words := strings.Fields(call)
		name := words[0]
		if name == "config" || name == "cluster" {
			name += "|" + words[1]
		}
		for i, key := range keys {
			if i > 0 && !strings.Contains(call, "KEY") {
				break
			}
			lists, names = append(lists, strings.Fields(strings.ReplaceAll(call, "KEY", key))), append(names, name)
		}
	}
	text, err := json.Marshal(lists)
	if err != nil {
		return nil, fmt.Errorf("write the calls: %w", err)
	}
	denied, err := c.Do(ctx, "eval", permitted, 0, text).Result()
	switch {
	case connect.IsNil(err):
		return nil, nil //nolint:nilnil // not known
	case err != nil && strings.HasPrefix(err.Error(), "NOPERM"):
		return &rights{missing: []string{"eval"}}, nil
	case err != nil:
		return nil, connect.MapError(ctx, err)
	}
	numbers, ok := denied.([]any)
	if !ok {
		return nil, nil //nolint:nilnil // not known
	}
	r := new(rights)
	seen := make(map[string]bool)
	for _, n := range numbers {
		i, _ := n.(int64)
		if i < 1 || int(i) > len(names) || seen[names[i-1]] {
			continue
		}
		name := names[i-1]
		seen[name] = true
		if optional[name] {
			r.optional = append(r.optional, name)
		} else {
			r.missing = append(r.missing, name)
		}
	}
	return r, nil
}
