package clienttest_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
)

// closeLater is a function of a program, which is tested: it closes an order after half an hour.
func closeLater(ctx context.Context, c *client.Client, order int) error {
	_, err := c.Register(ctx, client.Job{
		Topic: "order.close", URL: "https://shop.example/close", Delay: 30 * time.Minute,
		Body: map[string]int{"order": order},
	})
	return err // an example
}

// A test of a program that registers jobs, and of the handler that gets their requests.
func ExampleNew() {
	testClose := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			closed := 0
			shop := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { closed++ })
			srv := clienttest.New(t, shop)
			if err := closeLater(t.Context(), srv.Client(), 4711); err != nil {
				t.Fatal(err)
			}
			srv.Advance(29 * time.Minute)
			fmt.Println("after 29 minutes:", closed)
			srv.Advance(time.Minute)
			fmt.Println("after 30 minutes:", closed)
		})
	}
	runTest(testClose)
	// Output:
	// after 29 minutes: 0
	// after 30 minutes: 1
}

// runTest runs a test as go test does, without its lines of -v.
func runTest(f func(*testing.T)) {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	_ = verbose.Set("false")
	defer func() { _ = verbose.Set(was) }()
	ran := false
	once := func(t *testing.T) { // whatever -count says
		if !ran {
			ran = true
			f(t)
		}
	}
	testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "TestClose", F: once}})
}
