// Package throttle is what keeps a lane or a topic back for a while: cooldowns, breakers, and the starts that rates count, with
// their stored forms.
//
// Its values are immutable: a change makes another one. It knows no queues.
package throttle
