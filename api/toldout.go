package api

// callbackPayload writes the body of a job that Ringback made to tell of another. It may hold the other's headers, and those of an
// answer; their secrets are no more shown here than there.
func (o *Buffer) callbackPayload(body []byte) {
	body = skipSpace(body)
	if body[0] != '{' {
		o.b = append(o.b, body...)
		return
	}
	o.b = append(o.b, '{')
	for name, value := range Members(body) {
		o.next()
		o.quote(string(name))
		o.b = append(o.b, ':')
		if value[0] == '{' {
			o.callbackObject(value)
		} else {
			o.b = append(o.b, value...)
		}
	}
	o.Close()
}

// callbackObject writes what is told of a job or an answer.
func (o *Buffer) callbackObject(object []byte) {
	o.b = append(o.b, '{')
	for name, value := range Members(object) {
		o.next()
		o.quote(string(name))
		o.b = append(o.b, ':')
		if string(name) != "headers" || value[0] != '{' {
			o.b = append(o.b, value...)
			continue
		}
		o.b = append(o.b, '{')
		for header, values := range Members(value) {
			o.next()
			o.quote(string(header))
			o.b = append(o.b, ':')
			if secret(string(header)) {
				o.quote(Redacted)
			} else {
				o.b = append(o.b, values...)
			}
		}
		o.Close()
	}
	o.Close()
}
