// Package topicpages has the pages of the console about topics and lanes: Topics, a topic with its policy and its
// secrets, and a lane.
package topicpages
