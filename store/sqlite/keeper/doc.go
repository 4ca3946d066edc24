// Package keeper implements store.Keeper but for its wait: the carrier lock, carrier rounds, retention and alarms.
package keeper
