package api

// told writes the body of a job that Ringback made to tell of another. It may hold the other's headers, and those of an
// answer; their secrets are no more shown here than there.
func (o *out) told(body []byte) {
	body = skipSpace(body)
	if body[0] != '{' {
		o.b = append(o.b, body...)
		return
	}
	o.b = append(o.b, '{')
	for name, value := range members(body) {
		o.next()
		o.quote(string(name))
		o.b = append(o.b, ':')
		if value[0] == '{' {
			o.toldOf(value)
		} else {
			o.b = append(o.b, value...)
		}
	}
	o.close()
}

// toldOf writes what is told of a job or an answer.
func (o *out) toldOf(object []byte) {
	o.b = append(o.b, '{')
	for name, value := range members(object) {
		o.next()
		o.quote(string(name))
		o.b = append(o.b, ':')
		if string(name) != "headers" || value[0] != '{' {
			o.b = append(o.b, value...)
			continue
		}
		o.b = append(o.b, '{')
		for header, values := range members(value) {
			o.next()
			o.quote(string(header))
			o.b = append(o.b, ':')
			if secret(string(header)) {
				o.quote(redacted)
			} else {
				o.b = append(o.b, values...)
			}
		}
		o.close()
	}
	o.close()
}
