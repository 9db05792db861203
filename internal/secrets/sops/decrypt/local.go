package decrypt

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/pgp"

	"github.com/fluxkit/flux/internal/budget"
)

// dataKeyMax is the maximum size of a data key or of a part of a data key.
const dataKeyMax = 1 << 10

// age decrypts a data key with the keys of the Secret and of the user, then with the commands and SSH keys that the
// environment specifies for SOPS. Without these variables, it does not read ~/.ssh.
func (s *service) age(recipient string, sealed []byte) ([]byte, error) {
	if len(s.identities) > 0 {
		key := age.MasterKey{Recipient: recipient, EncryptedKey: string(sealed)}
		s.identities.ApplyToMasterKey(&key)
		if clear, err := key.Decrypt(); err == nil {
			return clear, nil
		}
	}
	if !s.configured(age.SopsAgeKeyCmdEnv, age.SopsAgeSshPrivateKeyFileEnv, age.SopsAgeSshPrivateKeyCmdEnv) {
		if strings.HasPrefix(recipient, "ssh-") {
			s.fail("SSH key", sealed, "set "+age.SopsAgeSshPrivateKeyFileEnv+" to use an SSH key")
		}
		return nil, errNoKey
	}
	key := age.MasterKey{Recipient: recipient, EncryptedKey: string(sealed)}
	return key.Decrypt()
}

func (s *service) configured(variables ...string) bool {
	for _, name := range variables {
		if s.env(name) != "" {
			return true
		}
	}
	return false
}

// pgp decrypts a data key with the keys of the Secret in memory, then with the user's keys and the gpg program. gpg
// runs only if the user has configured it, because it prompts for passphrases and may fetch keys.
func (s *service) pgp(ctx context.Context, fingerprint string, sealed []byte) ([]byte, error) {
	if clear, err := s.fromRing(sealed); err == nil {
		return clear, nil
	}
	if !s.configured(pgp.SopsGpgExecEnv, "GNUPGHOME") {
		if _, missing := exec.LookPath("gpg"); missing == nil {
			s.fail("PGP key "+fingerprint, sealed, "gpg was not run: set SOPS_GPG_EXEC or GNUPGHOME to use its keys")
		}
		return nil, errNoKey
	}
	key := pgp.NewMasterKeyFromFingerprint(fingerprint)
	key.EncryptedKey = string(sealed)
	pgp.DisableOpenPGP{}.ApplyToMasterKey(key)
	clear, err := key.DecryptContext(ctx)
	if err == nil || strings.Contains(err.Error(), "No secret key") {
		return clear, err
	}
	s.fail("PGP key "+fingerprint, sealed, firstLine(err))
	return nil, err
}

func (s *service) fromRing(sealed []byte) ([]byte, error) {
	if len(s.ring) == 0 {
		return nil, errNoKey
	}
	block, err := armor.Decode(bytes.NewReader(sealed))
	if err != nil {
		return nil, fmt.Errorf("reading the data key: %w", err)
	}
	message, err := openpgp.ReadMessage(block.Body, s.ring, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decrypting the data key: %w", err)
	}
	return budget.ReadAll(message.UnverifiedBody, "", "the data key", dataKeyMax)
}
