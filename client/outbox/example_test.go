package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/outbox"
)

const box = outbox.SQLite

// placeOrder writes an order, and the job that closes it unless it is paid within half an hour.
func placeOrder(ctx context.Context, db *sql.DB, relay *outbox.Relay, order int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES (?)", order); err != nil {
		return err
	}
	err = box.Add(ctx, tx, client.Job{
		ID: fmt.Sprint("close-", order), Topic: "order.close", URL: "https://shop.example/close",
		Delay: 30 * time.Minute, Body: map[string]int{"order": order},
	})
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	relay.Wake()
	return nil
}

// A shop writes an order and its job in one transaction.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	registered := make(chan string, 1)
	ringback := httptest.NewServer(printer(registered)) // yours is at https://ringback.internal
	defer ringback.Close()

	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+dir+"/shop.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, box.Schema()+"CREATE TABLE orders (number INTEGER PRIMARY KEY)"); err != nil {
		panic(err)
	}
	c, err := client.New(ringback.URL, client.Options{})
	if err != nil {
		panic(err)
	}
	relay := outbox.NewRelay(db, box, c, outbox.Options{})
	var relays sync.WaitGroup
	relays.Go(func() { relay.Run(ctx) })

	if err := placeOrder(ctx, db, relay, 4711); err != nil {
		panic(err)
	}
	if err := placeOrder(ctx, db, relay, 4711); err != nil {
		fmt.Println("the order exists, and has one job")
	}
	fmt.Println("registered:", <-registered)

	stop()
	relays.Wait() // it lets go of its rows
	// Output:
	// the order exists, and has one job
	// registered: close-4711
}

// printer is a Ringback that passes on the ids of jobs.
func printer(registered chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var batch struct{ Jobs []client.Job }
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			panic(err)
		}
		var results []map[string]any
		for i, j := range batch.Jobs {
			results = append(results, map[string]any{"index": i, "id": j.ID, "status": http.StatusCreated})
			registered <- j.ID
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}
}
