package sign

import "crypto/ed25519"

// material is a parsed secret or public key.
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

// redactedMaterial hides material from fmt, which prints unexported fields of structs without calling methods and
// follows a pointer to a struct for some verbs (%s), but not a pointer to a pointer. reflect.DeepEqual follows it, so
// that tests can compare secrets.
type redactedMaterial struct {
	material **material
}

func hideMaterial(m *material) redactedMaterial { return redactedMaterial{&m} }

// open returns the material, or nil.
func (v redactedMaterial) open() *material {
	if v.material == nil {
		return nil
	}
	return *v.material
}
