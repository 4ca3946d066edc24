package job

import "strings"

// A FieldError is one thing wrong with a request: the field as a JSON pointer ("/url", "/ladder/2"), and the rule that it
// breaks.
type FieldError struct {
	Field  string
	Detail string
}

// InvalidError names every fault of a registration or an edit at once.
type InvalidError struct {
	Errors []FieldError
}

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Errors))
	for i, f := range e.Errors {
		parts[i] = f.Field + ": " + f.Detail
	}
	return strings.Join(parts, "; ")
}

// UndeclaredTopicError refuses a job of a topic that nobody has put, where topics must be declared.
type UndeclaredTopicError struct {
	Topic string
}

func (e *UndeclaredTopicError) Error() string {
	return "topic " + e.Topic + " is not declared; PUT /v1/topics/" + e.Topic + " first"
}
