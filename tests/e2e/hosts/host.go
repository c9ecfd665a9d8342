// SPDX-License-Identifier: MIT
// Goroutines work, each on a thread of its own. An access through nil is a SIGSEGV that Go turns into a panic, on an
// alternate stack, and a loop that calls nothing ends only since Go stops it by SIGURG.
package main

// int host_work(void);
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

type host struct{ field int }

func access(h *host) (result string) {
	defer func() {
		if recover() != nil {
			result = "nil"
		}
	}()
	h.field++
	return "fine"
}

var turns int

func main() {
	results := make(chan string)
	for i := 0; i < 10; i++ {
		go func() {
			runtime.LockOSThread()
			failed := C.host_work()
			for j := 0; j < 100; j++ {
				access(nil)
			}
			results <- fmt.Sprint(failed, access(nil), access(&host{}))
		}()
	}
	for i := 0; i < 10; i++ {
		fmt.Println("go", <-results)
	}
	runtime.GOMAXPROCS(1)
	go func() {
		for {
			turns++ // calls nothing, so that only a signal ends its turn
		}
	}()
	for i := 0; i < 3; i++ {
		runtime.Gosched()
		C.host_work()
	}
	fmt.Println("go went on")
	os.Exit(8)
}
