package helper

import "encoding/json"

// request starts a job or answers a question of one.
type request struct {
	ID     int             `json:"id,omitempty"`
	Job    string          `json:"job,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Answer *answer         `json:"answer,omitempty"`
}

// response is the result of a job, or a question of a job.
type response struct {
	ID       int             `json:"id"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    string          `json:"error,omitempty"`
	Question *question       `json:"question,omitempty"`
}

type question struct {
	Number int             `json:"number"`
	Value  json.RawMessage `json:"value"`
}

// answer is the answer to the question with the same number.
type answer struct {
	Number int             `json:"number"`
	Value  json.RawMessage `json:"value,omitempty"`
	Error  string          `json:"error,omitempty"`
}
