package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store/redis/connect"
)

// calls are the commands that Ringback calls, by their arguments: a call of each, with KEY for a key, is checked
// against the user's rights and not made.
var calls = []struct{ commands, arguments string }{
	{"ping info time", ""},
	{"config|get", "maxmemory"},
	{"eval evalsha", "x 0"},
	{"get del unlink exists pttl hgetall hlen llen lpop zcard", "KEY"},
	{"set hget hmget hdel hexists hstrlen lpos rpush zmscore zrem zscore", "KEY x"},
	{"rename", "KEY KEY"},
	{"pexpire", "KEY 1"},
	{"hset hsetnx", "KEY x x"},
	{"hscan zscan blpop", "KEY 0"},
	{"lrange ltrim zcount zrange zrangebyscore", "KEY 0 1"},
	{"lrem", "KEY 0 x"},
	{"zadd", "KEY 1 x"},
	{"zrangebylex", "KEY - +"},
}

// optional are commands without which a part of Ringback does not work, as docs/redis.md says.
var optional = map[string]bool{
	"info": true, "config|get": true, "hscan": true, "zscan": true, "zmscore": true, "lpos": true, "unlink": true,
}

// needed returns the calls that the program makes to a server: a command, or as config|get, and its arguments.
func (f *facts) needed(c *redis.Client) (all []string) {
	for _, call := range calls {
		for command := range strings.FieldsSeq(call.commands) {
			all = append(all, command+" "+call.arguments)
		}
	}
	if f.cluster {
		all = append(all, "cluster|slots", "asking")
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
		name, _, _ := strings.Cut(call, " ")
		for i, key := range keys {
			if i > 0 && !strings.Contains(call, "KEY") {
				break
			}
			words := strings.Fields(strings.ReplaceAll(strings.Replace(call, "|", " ", 1), "KEY", key))
			lists, names = append(lists, words), append(names, name)
		}
	}
	text, err := json.Marshal(lists)
	if err != nil {
		return nil, fmt.Errorf("write the calls: %w", err)
	}
	denied, err := c.Do(ctx, "eval", permitted, 0, text).Result()
	switch {
	case connect.IsNil(err):
		return nil, nil // not known
	case err != nil && strings.HasPrefix(err.Error(), "NOPERM"):
		return &rights{missing: []string{"eval"}}, nil
	case err != nil:
		return nil, connect.MapError(ctx, err)
	}
	numbers, ok := denied.([]any)
	if !ok {
		return nil, nil // not known
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
