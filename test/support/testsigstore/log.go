package testsigstore

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor/pkg/util"
	"github.com/sigstore/sigstore/pkg/signature"
)

// entry returns the entry of a signature in a transparency log that has only this one: a record of
// the hash, the signature and the certificate, the promise to include it, and the proof that it is
// included.
func (s *Sigstore) entry(certificate []byte, of *protocommon.MessageSignature, at time.Time) (*protorekor.TransparencyLogEntry, error) {
	type object = map[string]any // its keys are encoded in order, as in the log
	body, err := json.Marshal(object{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": object{
		"data":      object{"hash": object{"algorithm": "sha256", "value": hex.EncodeToString(of.GetMessageDigest().GetDigest())}},
		"signature": object{"content": of.GetSignature(), "publicKey": object{"content": certificate}},
	}})
	if err != nil {
		return nil, err
	}
	id, err := logID(s.log)
	if err != nil {
		return nil, err
	}
	promised, err := json.Marshal(object{"body": body, "integratedTime": at.Unix(), "logID": hex.EncodeToString(id), "logIndex": 0})
	if err != nil {
		return nil, err
	}
	promise, err := signed(s.log, promised)
	if err != nil {
		return nil, err
	}
	// The hash of a tree with one leaf is the hash of the leaf.
	hash := sha256.Sum256(append([]byte{0}, body...))
	signer, err := signature.LoadECDSASignerVerifier(s.log, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	checkpoint, err := util.CreateAndSignCheckpoint(context.Background(), "rekor.test", 1, 1, hash[:], signer)
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogId: &protocommon.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"}, IntegratedTime: at.Unix(),
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: promise},
		InclusionProof:    &protorekor.InclusionProof{TreeSize: 1, RootHash: hash[:], Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)}},
		CanonicalizedBody: body,
	}, nil
}
