package cireport

import (
	"encoding/xml"
	"io"
)

type (
	// Suites is a JUnit report.
	Suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []Suite  `xml:"testsuite"`
	}
	// Suite is a group of tests.
	Suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Cases    []Case `xml:"testcase"`
	}
	// Case is a test.
	Case struct {
		Class string `xml:"classname,attr"`
		Name  string `xml:"name,attr"`
		// File is the file that the test checks, or "". Line is 0 if unknown.
		File string `xml:"file,attr,omitempty"`
		Line int    `xml:"line,attr,omitempty"`
		// Seconds is the duration of the test, 0 if unknown.
		Seconds  float64   `xml:"time,attr,omitempty"`
		Failures []Problem `xml:"failure"`
		Skipped  *Problem  `xml:"skipped"`
	}
	// Problem is the reason why a test failed or was skipped.
	Problem struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		// Place is a file with a line, or "".
		Place string `xml:",chardata"`
	}
)

// Add adds a test.
func (s *Suite) Add(c Case) {
	c.Class = s.Name
	s.Cases = append(s.Cases, c)
	s.Tests++
	s.Failures += min(len(c.Failures), 1)
	if c.Skipped != nil {
		s.Skipped++
	}
}

// Add adds a group of tests.
func (s *Suites) Add(suite Suite) {
	s.Tests, s.Failures, s.Skipped = s.Tests+suite.Tests, s.Failures+suite.Failures, s.Skipped+suite.Skipped
	s.Suites = append(s.Suites, suite)
}

// Write writes the report.
func (s *Suites) Write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
