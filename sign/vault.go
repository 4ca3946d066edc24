package sign

import "crypto/ed25519"

// The material of a secret or of a public key.
type material struct {
	text    string             // as given, with the padding of base64
	shared  []byte             // of a whsec_ secret, else nil
	private ed25519.PrivateKey // of a whsk_ key, else nil
	public  ed25519.PublicKey  // of a whsk_ or whpk_ key, else nil
}

func newPrivate(text string, private ed25519.PrivateKey) *material {
	// A key's last bytes are its public half, by the type's definition.
	return &material{text: text, private: private, public: ed25519.PublicKey(private[ed25519.SeedSize:])}
}

// A vault keeps material from being printed where no method is asked how: in an unexported field of somebody's struct.
// There fmt prints what it finds, and follows a pointer to a struct when the verb is one that a pointer does not have
// (%s). It follows no pointer to a pointer. reflect.DeepEqual does, so that secrets can be compared in tests.
type vault struct {
	material **material
}

func lock(m *material) vault { return vault{&m} }

// open gives the material; nil when there is none.
func (v vault) open() *material {
	if v.material == nil {
		return nil
	}
	return *v.material
}
