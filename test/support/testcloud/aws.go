package testcloud

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// token implements GetAuthorizationToken of ECR and of its public registry.
func (c amazon) token(w http.ResponseWriter, r *http.Request) {
	target, service, region, registry := "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken", "ecr", "eu-west-1", ECR
	if r.Host == publicECRAPI {
		target, service, region, registry = "SpencerFrontendService.GetAuthorizationToken", "ecr-public", "us-east-1", PublicECR
	}
	switch err := c.signed(r, service, region); {
	case errors.Is(err, errExpired):
		awsError(w, "ExpiredTokenException", "The security token included in the request is expired")
	case err != nil:
		awsError(w, "UnrecognizedClientException", err.Error())
	case r.Header.Get("X-Amz-Target") != target:
		awsError(w, "UnknownOperationException", r.Header.Get("X-Amz-Target"))
	case c.is(Denied):
		awsError(w, "AccessDeniedException", "User: arn:aws:iam::123456789012:user/flux is not authorized to perform: "+service+":GetAuthorizationToken")
	default:
		password := secret("ecr-password")
		c.grant(password, grant{use: registry})
		token := base64.StdEncoding.EncodeToString([]byte("AWS:" + password))
		data := any(map[string]any{"authorizationToken": token, "expiresAt": time.Now().Add(12 * time.Hour).Unix(), "proxyEndpoint": "https://" + registry})
		if registry == ECR {
			data = []any{data}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		respond(w, http.StatusOK, map[string]any{"authorizationData": data})
	}
}

func awsError(w http.ResponseWriter, code, message string) {
	respond(w, http.StatusBadRequest, map[string]string{"__type": code, "message": message})
}

// signed checks the signature of a request.
func (c amazon) signed(r *http.Request, service, region string) error {
	id := accessKeyOf(r)
	key, err := c.valid(id, "aws")
	if err != nil {
		return err
	}
	if key.session != r.Header.Get("X-Amz-Security-Token") {
		return errors.New("the security token included in the request is invalid")
	}
	return checkSignature(r, aws.Credentials{AccessKeyID: id, SecretAccessKey: key.secret, SessionToken: key.session}, service, region)
}

// accessKeyOf returns the ID of the access key that signed a request.
func accessKeyOf(r *http.Request) string {
	_, id, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	id, _, _ = strings.Cut(id, "/")
	return id
}

// checkSignature checks the signature of a request by signing it again.
func checkSignature(r *http.Request, credentials aws.Credentials, service, region string) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	authorization := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "https://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	_, names, _ := strings.Cut(authorization, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range strings.SplitSeq(names, ";") {
		if value := r.Header.Get(name); value != "" && name != "host" && name != "content-length" {
			again.Header.Set(name, value)
		}
	}
	sum := sha256.Sum256(body)
	signing := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
	if err := signing.SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), service, region, at); err != nil {
		return err
	}
	if again.Header.Get("Authorization") != authorization {
		return errors.New("the request signature we calculated does not match the signature you provided")
	}
	return nil
}

// accessKey issues an access key of a role.
func (c amazon) accessKey() (id string, g grant) {
	id, g = "ASIA"+rand.Text(), grant{use: "aws", secret: secret("role-key"), session: secret("role-session")}
	c.grant(id, g)
	return id, g
}

// webIdentity implements AssumeRoleWithWebIdentity of STS.
func (c amazon) webIdentity(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml")
	err := c.account.verify(r.PostFormValue("WebIdentityToken"), "sts.amazonaws.com")
	if err != nil || r.PostFormValue("Action") != "AssumeRoleWithWebIdentity" || r.PostFormValue("RoleArn") != role {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>%v</Message></Error><RequestId>1</RequestId></ErrorResponse>`, err)
		return
	}
	id, key := c.accessKey()
	_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
		id, key.secret, key.session, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

// metadata implements the container credentials endpoint, and version 2 of the instance
// metadata service.
func (c amazon) metadata(w http.ResponseWriter, r *http.Request) {
	const roles = "/latest/meta-data/iam/security-credentials/"
	session := r.Header.Get("X-Aws-Ec2-Metadata-Token") == c.account.metadata
	switch {
	case r.URL.Path == "/container" && r.Header.Get("Authorization") == c.account.metadata:
		c.keys(w)
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
		_, _ = io.WriteString(w, c.account.metadata)
	case r.URL.Path == roles && session:
		_, _ = io.WriteString(w, "flux")
	case r.URL.Path == roles+"flux" && session:
		c.keys(w)
	default:
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	}
}

func (c amazon) keys(w http.ResponseWriter) {
	id, key := c.accessKey()
	respond(w, http.StatusOK, map[string]string{
		"Code": "Success", "AccessKeyId": id, "SecretAccessKey": key.secret, "Token": key.session, "Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
}
