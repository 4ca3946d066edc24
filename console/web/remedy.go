package web

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/access"
)

// Remedy is the data of the template "remedy": what ends an obstacle.
type Remedy struct {
	Link

	Posts bool // it is a button
}

// Remedy returns a button or a link for a remedy of the API; nil: there is none, or the reader may not use it.
func (v *Visit) Remedy(r *client.Remedy) *Remedy {
	if r == nil {
		return nil
	}
	what, path, resume := "topic "+r.Topic, []string{"topics", r.Topic}, access.ResumeTopic
	if r.Lane != "" {
		what, path, resume = "lane "+r.Lane, append(path, "lanes", r.Lane), access.ResumeLane
	}
	switch {
	case r.ID != "":
		return &Remedy{Link: Link{To: v.Path("jobs", r.ID), Text: "Open job " + r.ID}}
	case r.Action == "resume" && v.CanTopic(resume, r.Topic):
		return &Remedy{Link{To: v.Path(append(path, "resume")...), Text: "Resume " + what}, true}
	case (r.Action == "set" || r.Action == "put") && v.Can(access.ReadTopic):
		return &Remedy{Link: Link{To: v.Path(path...), Text: "Settings of " + what}}
	}
	return nil
}
