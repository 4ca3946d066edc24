package access_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
)

func TestText_HasItsFormAndParses(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		text, id := access.NewText()
		require.Regexp(t, `^rb_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}$`, text)
		parsed, err := access.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, id, parsed)
		require.False(t, seen[text])
		seen[text] = true
	}
}

func TestText_OfAnEarlierVersionParses(t *testing.T) {
	id, err := access.ParseID(golden)
	require.NoError(t, err)
	require.Equal(t, "5tR1nGs0", id)
	hash, err := access.HashOf(golden).MarshalText()
	require.NoError(t, err)
	require.Equal(t, goldenHash, string(hash))
}

func TestParseID_RefusesEveryTypo(t *testing.T) {
	text, _ := access.NewText()
	for i := range len(text) {
		for _, c := range []byte{'0', 'z', '_', '-', ' ', 0, 0xff} {
			if text[i] == c {
				continue
			}
			_, err := access.ParseID(text[:i] + string([]byte{c}) + text[i+1:])
			require.ErrorIs(t, err, access.ErrMalformed, "%d %q", i, c)
		}
		if i > 0 && text[i] != text[i-1] {
			swapped := text[:i-1] + text[i:i+1] + text[i-1:i] + text[i+1:]
			_, err := access.ParseID(swapped)
			require.ErrorIs(t, err, access.ErrMalformed, "swapped at %d", i)
		}
	}
	for _, bad := range []string{"", "rb_", text[:60], text + "0", " " + text, text + "\n", strings.ToUpper(text)} {
		_, err := access.ParseID(bad)
		require.ErrorIs(t, err, access.ErrMalformed, bad)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(golden)
	f.Add("rb_")
	f.Add(strings.Repeat("rb_", 40))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := access.ParseID(text)
		if err != nil {
			require.Empty(t, id)
			return
		}
		require.True(t, access.IsID(id))
		require.True(t, strings.HasPrefix(text, access.Prefix+id+"_"))
		access.HashOf(text)
	})
}

func TestHash_ComparesAndEncodes(t *testing.T) {
	a, b := access.HashOf(golden), access.HashOf(golden+"x")
	require.True(t, a.Equal(access.HashOf(golden)))
	require.False(t, a.Equal(b))
	require.NotEqual(t, access.HashOf(strings.Repeat("a", 1000)),
		access.HashOf(strings.Repeat("a", 1001)), "long texts")
	encoded, err := json.Marshal(a)
	require.NoError(t, err)
	var decoded access.Hash
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	require.Equal(t, a, decoded)
	for _, bad := range []string{`"zz"`, `"00"`, `""`} {
		require.Error(t, json.Unmarshal([]byte(bad), &decoded), bad)
	}
}

func TestToken_JSONFormIsStable(t *testing.T) {
	token := access.Token{
		ID: "5tR1nGs0", Name: "shop-api", Role: access.Publish, Namespace: "shop", Topics: access.Topics{"order.*"},
		Hash: access.HashOf(golden), CreatedAt: time.Unix(1_700_000_000, 0).UTC(), CreatedBy: "root",
		ExpiresAt: time.Unix(1_800_000_000, 0).UTC(),
	}
	encoded, err := json.Marshal(token)
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "shop-api", "role": "publish", "namespace": "shop", "topics": ["order.*"], "bodies": `+
		`false, "hash": "`+goldenHash+`",
		"created_at": "2023-11-14T22:13:20Z", "created_by": "root", "expires_at": "2027-01-15T08:00:00Z"}`,
		string(encoded))
	require.Equal(t, &access.Principal{
		TokenID: token.ID, Actor: "shop-api", Role: access.Publish, Namespace: "shop", Topics: token.Topics,
		ExpiresAt: token.ExpiresAt,
	}, token.Principal())
}

// golden is a token as an earlier version generated it.
const (
	golden     = "rb_5tR1nGs0_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg2lVyRp"
	goldenHash = "a34e5290ad4534b90fc57f1cacbef11c327522d2f106ba23e327fc7cf9001b5e"
)

func TestTopics_Match(t *testing.T) {
	for _, c := range []struct {
		patterns access.Topics
		topic    string
		want     bool
	}{
		{nil, "anything", true},
		{access.Topics{"order.*"}, "order.close", true},
		{access.Topics{"order.*"}, "order.", true},
		{access.Topics{"order.*"}, "order", false},
		{access.Topics{"order.*"}, "orders", false},
		{access.Topics{"order.*"}, "", false},
		{access.Topics{"order"}, "order", true},
		{access.Topics{"order"}, "order.close", false},
		{access.Topics{"a", "b*"}, "bc", true},
		{access.Topics{"a", "b*"}, "ab", false},
		{access.Topics{"*"}, "anything", true},
	} {
		require.Equal(t, c.want, c.patterns.Match(c.topic), "%v %s", c.patterns, c.topic)
	}
	for text, want := range map[string]bool{
		"order.*": true, "order": true, "*": true, "": false, "**": false, "a*b": false, "*a": false, "a/b": false,
		strings.Repeat("a", 64) + "*": true, strings.Repeat("a", 65): false,
	} {
		require.Equal(t, want, access.IsTopicPattern(text), text)
	}
}

func TestPrincipal_WithoutOneNothingIsAllowed(t *testing.T) {
	for _, role := range access.Roles() {
		require.True(t, role.Allows(access.ReadService))
	}
	require.False(t, access.Nobody.Allows(access.ReadService))
}

func TestRole_Allows(t *testing.T) {
	for _, c := range []struct {
		action access.Action
		want   []access.Role
	}{
		{access.RegisterJob, []access.Role{access.Publish, access.Admin}},
		{access.ReadJob, access.Roles()},
		{access.CancelJob, []access.Role{access.Publish, access.Operate, access.Admin}},
		{access.ListJobs, []access.Role{access.Read, access.Operate, access.Admin}},
		{access.EditJob, []access.Role{access.Operate, access.Admin}},
		{access.PauseTopic, []access.Role{access.Operate, access.Admin}},
		{access.ReviveDead, []access.Role{access.Operate, access.Admin}},
		{access.ChangeTopic, []access.Role{access.Admin}},
		{access.AddSecret, []access.Role{access.Admin}},
		{access.CreateToken, []access.Role{access.Admin}},
		{"unknown", nil},
	} {
		require.Equal(t, c.want, access.RolesFor(c.action), c.action)
		for _, role := range access.Roles() {
			allowed := false
			for _, r := range c.want {
				allowed = allowed || r == role
			}
			require.Equal(t, allowed, role.Allows(c.action), "%s %s", role, c.action)
		}
	}
	require.False(t, access.Role("").Allows(access.Open))
	for _, action := range []access.Action{access.ReadNamespaces, access.PutNamespace, access.DeleteNamespace} {
		require.False(t, (&access.Principal{Role: access.Admin}).Allows(action))
		require.True(t, access.NewRoot("", "default").Allows(action))
	}
}

func TestParse_DoesNotAllocate(t *testing.T) {
	text, _ := access.NewText()
	hash := access.HashOf(text)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err := access.ParseID(text)
		if err != nil || !access.HashOf(text).Equal(hash) {
			panic("not the token")
		}
	}))
}
