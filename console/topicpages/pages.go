package topicpages

import (
	"embed"
	"html/template"
	"time"

	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

//go:embed all:templates
var files embed.FS

// section is the item of the navigation.
const section = "topics"

// pages has what the pages share with others.
type pages struct {
	answers *recent.Answers
}

// New returns the pages.
func New(answers *recent.Answers) web.Pages {
	p := &pages{answers}
	const topic, lane = "topics/{topic}", "topics/{topic}/lanes/{lane}"
	return web.Pages{
		Name:  "topicpages",
		Files: files,
		Funcs: template.FuncMap{
			"waiting": counted.Waiting, "due": dated.Due, "changed": changeable.Changed,
			"hasSettings": laneRow.hasSettings, "ofLimit": laneRow.ofLimit, "cooling": laneRow.cooling,
			"coolingFor": laneRow.coolingFor, "breakerWord": laneRow.breakerWord, "keyKind": words.KeyKind,
			"failure": words.Failure, "spark": (*recent.Attempts).Spark, "hourText": (*recent.Attempts).Text,
			"failingClass": failingClass,
		},
		Routes: []web.Route{
			web.Get("topics", access.ReadTopic, p.showTopics),
			web.Get(topic, access.ReadTopic, showTopic),
			web.Post(topic+"/create", access.ChangeTopic, createTopic),
			web.Post(topic+"/pause", access.PauseTopic, pauseTopic),
			web.Post(topic+"/resume", access.ResumeTopic, resumeTopic),
			web.Get(topic+"/delete", access.DeleteTopic, askToDelete),
			web.Post(topic+"/delete", access.DeleteTopic, deleteTopic),
			web.Get(lane, access.ReadLane, showLane),
			web.Post(lane+"/pause", access.PauseLane, pauseLane),
			web.Post(lane+"/resume", access.ResumeLane, resumeLane),
			web.Get(topic+"/policy", access.ReadTopic, showPolicy),
			web.Post(topic+"/policy", access.ChangeTopic, changePolicy),
			web.Post(topic+"/policy/preview", access.ChangeTopic, previewPolicy),
			web.Get(topic+"/secrets", access.ReadSecrets, showSecrets),
			web.Post(topic+"/secrets", access.AddSecret, addSecret),
			web.Post(topic+"/secrets/{id}/remove", access.RemoveSecret, removeSecret),
			web.Post(lane, access.ChangeLane, changeLane),
			web.Post(lane+"/delete", access.DeleteLane, deleteLane),
			web.Get(lane+"/secrets", access.ReadSecrets, showSecrets),
			web.Post(lane+"/secrets", access.AddSecret, addSecret),
			web.Post(lane+"/secrets/{id}/remove", access.RemoveSecret, removeSecret),
		},
	}
}

// The data of templates that several pages have.
type (
	counted    interface{ Waiting() int64 }
	dated      interface{ Due(now time.Time) string }
	changeable interface{ Changed() lastChange }
)

// tab is a link to one of the pages of a topic or a lane.
type tab struct {
	web.Link

	Current bool
}

// owner is a topic, or a lane of it.
type owner struct{ Topic, Lane string }

func ownerOf(v *web.Visit) owner { return owner{v.PathValue("topic"), v.PathValue("lane")} }

// path returns the link of a page of the owner.
func (o owner) path(v *web.Visit, more ...string) string {
	parts := []string{"topics", o.Topic}
	if o.Lane != "" {
		parts = append(parts, "lanes", o.Lane)
	}
	return v.Path(append(parts, more...)...)
}

// String names the owner within a sentence.
func (o owner) String() string {
	if o.Lane != "" {
		return "lane " + o.Lane + " of topic " + o.Topic
	}
	return "topic " + o.Topic
}

// crumbs lead to the pages above a page of the owner; within: the page is below the owner's first one.
func (o owner) crumbs(v *web.Visit, within bool) []web.Link {
	links := []web.Link{{To: v.Path("topics"), Text: "Topics"}}
	if o.Lane != "" {
		links = append(links, web.Link{To: v.Path("topics", o.Topic), Text: o.Topic})
	}
	if within {
		text := o.Topic
		if o.Lane != "" {
			text = "Lane " + o.Lane
		}
		links = append(links, web.Link{To: o.path(v), Text: text})
	}
	return links
}

// tabs are the pages of the owner that the token may see.
func (o owner) tabs(v *web.Visit, current string) []tab {
	var tabs []tab
	add := func(text, part string, show bool) {
		to := o.path(v)
		if part != "" {
			to = o.path(v, part)
		}
		if show {
			tabs = append(tabs, tab{web.Link{To: to, Text: text}, part == current})
		}
	}
	add("Overview", "", true)
	add("Policy", "policy", o.Lane == "")
	add("Secrets", "secrets", v.CanTopic(access.ReadSecrets, o.Topic))
	return tabs
}
