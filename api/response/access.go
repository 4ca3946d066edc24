package response

import (
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
)

// Token writes a token without its secret.
func (o *Buffer) Token(t *access.Token) {
	o.Text("id", t.ID)
	o.Text("name", t.Name)
	o.Text("role", string(t.Role))
	o.Text("namespace", t.Namespace)
	o.textsOrNull("topics", t.Topics)
	o.Bool("bodies", t.Bodies)
	o.Time("created_at", t.CreatedAt)
	o.TextOrNull("created_by", t.CreatedBy)
	o.TextOrNull("created_by_id", t.CreatedByID)
	o.Time("expires_at", t.ExpiresAt)
	o.Time("last_used_at", t.LastUsedAt)
}

// Principal writes whose a request is.
func (o *Buffer) Principal(p *access.Principal) {
	o.TextOrNull("actor", p.Actor)
	o.TextOrNull("token_id", p.TokenID)
	o.Text("role", string(p.Role))
	o.Bool("root", p.Root)
	o.Text("namespace", p.Namespace)
	o.textsOrNull("topics", p.Topics)
	o.Bool("bodies", p.Bodies)
	o.Time("expires_at", p.ExpiresAt)
}

// Namespace writes a namespace.
func (o *Buffer) Namespace(n *job.Namespace) {
	o.Text("namespace", n.Name)
	o.Number("revision", n.Revision)
	o.Text("store", n.Store)
	o.Object("quota")
	o.numberOrNull("pending", n.Quota.Pending)
	size := ""
	if n.Quota.Bytes > 0 {
		size = units.FormatSize(n.Quota.Bytes)
	}
	o.TextOrNull("bytes", size)
	o.TextOrNull("rate", units.FormatRate(n.Quota.Rate))
	o.Close()
}
