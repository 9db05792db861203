package helper

import "encoding/json"

// request starts a job or responds to a query of a job.
type request struct {
	ID    int             `json:"id,omitempty"`
	Job   string          `json:"job,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Reply *reply          `json:"answer,omitempty"`
}

// response is the result of a job, or a query of a job.
type response struct {
	ID     int             `json:"id"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	Query  *query          `json:"question,omitempty"`
}

type query struct {
	Number int             `json:"number"`
	Value  json.RawMessage `json:"value"`
}

// reply is the response to the query with the same number.
type reply struct {
	Number int             `json:"number"`
	Value  json.RawMessage `json:"value,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Error is the failure of a job.
type Error struct {
	// Step is the step that failed, "" if the job does not distinguish steps.
	Step string `json:"step,omitempty"`
	Text string `json:"text"`
}

func (e *Error) Error() string { return e.Text }
