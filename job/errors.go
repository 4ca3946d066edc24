package job

import "strings"

// FieldError is one invalid field of a request: the field as a JSON pointer ("/url", "/ladder/2") and the violated rule.
type FieldError struct {
	Field  string
	Detail string
}

// InvalidError holds all invalid fields of a registration or an edit.
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

// UndeclaredTopicError rejects a job of a topic without a stored policy where topics must be declared.
type UndeclaredTopicError struct {
	Topic string
}

func (e *UndeclaredTopicError) Error() string {
	return "topic " + e.Topic + " is not declared; PUT /v1/topics/" + e.Topic + " first"
}
