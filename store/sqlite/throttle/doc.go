// Package throttle has the limits in time of a lane or a topic: cooldowns, breakers, and the starts that rates count,
// with their stored forms.
//
// Its values are immutable: a change makes another one. It knows no queues.
package throttle
