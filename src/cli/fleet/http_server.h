/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP/1.1 server: one thread, GET and HEAD of a few paths, one request per connection. A
 * client that is slow, sends too much or never reads only occupies its place, for a bounded time;
 * if there are too many, those that have their answer are evicted, those without a complete
 * request, and those that do not read.
 *
 * A page of another site, whose name its owner points at this address, could read the answers
 * through the user's browser. So the Host of a request is an address, localhost or a name that was
 * allowed.
 */
#ifndef CW_CLI_HTTP_SERVER_H
#define CW_CLI_HTTP_SERVER_H

#include <signal.h>
#include <stddef.h>

#define CW_HTTP_LISTENERS   8
#define CW_HTTP_CLIENTS     32
#define CW_HTTP_REQUEST_MAX 8192
#define CW_HTTP_HOSTS       16

/* Makes a body, to be freed; NULL if out of memory. */
typedef char *(*cw_http_make)(void *arg, size_t *out_len);

struct cw_http_path {
    const char *path, *type;
    cw_http_make make;
};

struct cw_http_server {
    int listener[CW_HTTP_LISTENERS];
    unsigned listeners;
    const struct cw_http_path *path; /* ends with a NULL path */
    void *arg;
    unsigned timeout_ms;     /* for receiving a request, and for sending an answer */
    const char *const *host; /* further names that a request may use; ends with NULL */
};

/* Listens on "127.0.0.1:9835" or "[::1]:9835"; port 0: any free port. Addresses other than loopback
 * require `any`. The effective address goes to `bound` (64 bytes are enough). 0, or -1 after a
 * message; -2 after one about the syntax of the address. */
int cw_http_listen(struct cw_http_server *server, const char *address, int any, char *bound,
                   size_t cap);
/* Serves until *ended is not 0; signals that set it must be blocked, and `mask` unblocks them only
 * while the server waits. 0, or -1 after a message. */
int cw_http_serve(struct cw_http_server *server, const volatile sig_atomic_t *ended,
                  const sigset_t *mask);
void cw_http_close(struct cw_http_server *server);

#endif
