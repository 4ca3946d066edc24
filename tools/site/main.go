// Command site renders the documentation as static pages with a search: site ROOT DESTINATION. The pages have the paths
// of their sources, with .html for .md and index for README, so that links between them stay short and readable.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site ROOT DESTINATION")
		os.Exit(2)
	}
	n, err := Render(os.DirFS(os.Args[1]), os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("built %s: %d pages\n", os.Args[2], n)
}
