// Package keeper implements store.Keeper except WaitAgenda: the carrier lock, carrier rounds, retention and alarms.
package keeper
