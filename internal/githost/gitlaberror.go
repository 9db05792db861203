package githost

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/xanzy/go-gitlab"
)

// gitlabPages returns all pages of a list.
func gitlabPages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	var all []T
	options := gitlab.ListOptions{PerPage: 100, Page: 1}
	for {
		some, response, err := list(options)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if response.NextPage <= options.Page {
			return all, nil
		}
		options.Page = response.NextPage
	}
}

func gitlabMissing(err error) bool { return status(err) == http.StatusNotFound }

// gitlabTaken reports whether GitLab rejected the creation of an object that
// exists. Most versions respond with 400, not 409.
func gitlabTaken(err error) bool {
	code := status(err)
	return (code == http.StatusBadRequest || code == http.StatusConflict || code == http.StatusUnprocessableEntity) &&
		strings.Contains(gitlabMessage(err), "has already been taken")
}

// gitlabRejection is the body of the response to a rejected request.
type gitlabRejection struct {
	Message     any    `json:"message"`
	Error       any    `json:"error"`
	Description string `json:"error_description"`
	Scope       string `json:"scope"`
}

func readGitLabRejection(err error) gitlabRejection {
	var response *gitlab.ErrorResponse
	var body gitlabRejection
	if errors.As(err, &response) && json.Unmarshal(response.Body, &body) != nil {
		return gitlabRejection{} // for example a page of a proxy
	}
	return body
}

// gitlabMessage returns the message of a rejected request as one line.
func gitlabMessage(err error) string {
	body := readGitLabRejection(err)
	for _, part := range []any{body.Message, body.Description, body.Error} {
		if text := gitlabText(part); text != "" {
			return text
		}
	}
	return ""
}

// gitlabText returns a message as one line. It may be a string, a list, or fields
// with lists.
func gitlabText(message any) string {
	var parts []string
	switch m := message.(type) {
	case string:
		return m
	case []any:
		for _, part := range m {
			parts = append(parts, gitlabText(part))
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, field+" "+gitlabText(m[field]))
		}
	}
	return strings.Join(parts, ", ")
}
