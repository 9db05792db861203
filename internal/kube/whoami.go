package kube

import (
	"context"
	"encoding/json"
	"fmt"
)

// WhoAmI returns the user name of the client.
func (a Access) WhoAmI(ctx context.Context) (string, error) {
	review := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	body, err := answer(ctx, a.raw.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body(review))
	if err != nil {
		return "", fmt.Errorf("reading the user name: %w", err)
	}
	var answer struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("parsing the user name: %w", err)
	}
	return answer.Status.UserInfo.Username, nil
}
