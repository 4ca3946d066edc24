package client

import (
	"context"
	"iter"
	"time"
)

// NewSecret is a signing secret to add; the zero value: the server makes one of the kind hmac.
type NewSecret struct {
	Secret string `json:"secret,omitzero"` // whsec_… or whsk_…
	Kind   string `json:"kind,omitzero"`   // hmac or ed25519
}

// Secret is a signing secret. Only AddSecret shows its Kind, Secret and PublicKey.
type Secret struct {
	Answer

	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	Kind      string    `json:"kind"`
	Secret    string    `json:"secret"`
	PublicKey string    `json:"public_key"` // of an ed25519 key
}

// Key is a public key with which receivers verify signatures.
type Key struct {
	Answer

	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	PublicKey string    `json:"public_key"` // whpk_…
}

// ownerOfSecrets returns the path of a lane, or of a topic if lane is empty.
func ownerOfSecrets(topic, lane string, rest ...string) []string {
	parts := []string{"/v1/topics/", topic}
	if lane != "" {
		parts = append(parts, "/lanes/", lane)
	}
	return append(parts, rest...)
}

// AddSecret adds a signing secret to a lane, or to a topic if lane is empty, and returns it. It is shown only here.
func (c *Client) AddSecret(
	ctx context.Context, topic, lane string, s NewSecret, conditions ...Condition,
) (*Secret, error) {
	return answer[Secret](ctx, c, onceOf(conditions), s, ownerOfSecrets(topic, lane, "/secrets")...)
}

// Secrets returns the signing secrets of a lane, or of a topic if lane is empty, newest first, without their values.
func (c *Client) Secrets(ctx context.Context, topic, lane string) iter.Seq2[*Secret, error] {
	return list[Secret](ctx, c, nil, ownerOfSecrets(topic, lane, "/secrets")...)
}

// SecretsPage returns a page of Secrets.
func (c *Client) SecretsPage(ctx context.Context, topic, lane string, o PageOptions) (*Page[Secret], error) {
	return readPage[Page[Secret]](ctx, c, o, ownerOfSecrets(topic, lane, "/secrets")...)
}

// RemoveSecret removes a signing secret of a lane, or of a topic if lane is empty.
func (c *Client) RemoveSecret(ctx context.Context, topic, lane, id string, conditions ...Condition) error {
	return c.send(ctx, remove(conditions), nil, ownerOfSecrets(topic, lane, "/secrets/", id)...)
}

// Keys returns the public keys of a lane, or of a topic if lane is empty.
func (c *Client) Keys(ctx context.Context, topic, lane string) iter.Seq2[*Key, error] {
	return list[Key](ctx, c, nil, ownerOfSecrets(topic, lane, "/keys")...)
}
