/* SPDX-License-Identifier: MIT */
/*
 * Serving HTTP. See http_server.h.
 *
 * A client is in one of three states: receiving its request; sending the answer; or, after the
 * answer, discarding input until the client closes too, because closing a connection with unread
 * bytes would destroy the answer. Each state has a deadline.
 *
 * Written by hand, because GNU libmicrohttpd (tried: 0.9.75, Debian 12) cannot provide what is
 * promised here. If silent clients occupy all places, it admits nobody until their timeout; here
 * they are evicted at once. It sends no 408 for late requests, and no 400 for an empty request,
 * "GET" alone or a TLS hello: it just closes.
 */
#include "cli/fleet/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/ui/message.h"

#define LINGER_MS 1000
#define BREATH_MS 50

enum state { RECEIVING, SENDING, LINGERING };

struct client {
    int fd;
    enum state state;
    uint64_t deadline_ms;
    uint64_t moved_ms; /* when something was last sent */
    char request[CW_HTTP_REQUEST_MAX + 1];
    size_t got;
    char *answer;
    size_t len, sent;
};

struct serving {
    struct cw_http_server *server;
    struct client *client[CW_HTTP_CLIENTS];
    unsigned clients;
};

static uint64_t now_ms(void)
{
    return cw_clock_ns() / 1000000;
}

/* ---- answers ---- */

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

/* Takes ownership of `body`; NULL: the reason phrase. */
static void answer(const struct serving *serving, struct client *client, int status,
                   const char *type, char *body, size_t len, int is_head)
{
    char words[64], head[512];
    size_t head_len;
    const char *text = body;

    if (!body) {
        len = (size_t)snprintf(words, sizeof(words), "%d %s\n", status, reason_of(status));
        text = words;
        type = "text/plain; charset=utf-8";
    }
    head_len = (size_t)snprintf(head, sizeof(head),
                                "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                                "%sConnection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n",
                                status, reason_of(status), type, len,
                                status == 405 ? "Allow: GET, HEAD\r\n" : "");
    client->answer = malloc(head_len + len);
    client->sent = client->len = 0;
    client->state = SENDING;
    client->moved_ms = now_ms();
    client->deadline_ms = client->moved_ms + serving->server->timeout_ms;
    if (client->answer) {
        memcpy(client->answer, head, head_len);
        client->len = head_len;
        if (!is_head) {
            memcpy(client->answer + head_len, text, len);
            client->len += len;
        }
    }
    free(body);
}

static void answer_path(const struct serving *serving, struct client *client, const char *path,
                        int is_head)
{
    const struct cw_http_path *known = serving->server->path;
    char *body;
    size_t len = 0;

    while (known->path && strcmp(known->path, path) != 0)
        known++;
    if (!known->path) {
        answer(serving, client, 404, NULL, NULL, 0, is_head);
        return;
    }
    body = known->make(serving->server->arg, &len);
    answer(serving, client, body ? 200 : 500, known->type, body, len, is_head);
}

/* ---- whom a request means ---- */

/* The first field Host behind the beginning of a line, NULL if there is none. */
static const char *find_host(const char *line)
{
    for (; *line; line += strcspn(line, "\n"), line += *line != '\0')
        if (strncasecmp(line, "host:", 5) == 0)
            return line;
    return NULL;
}

/* RFC 9112, section 3.2: which of them is meant, others may see otherwise. */
static int has_two_hosts(const char *fields)
{
    const char *first = find_host(fields);

    return first && find_host(first + 1) != NULL;
}

/* "10.1.2.3" or "[::1]", without a port. */
static int is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char inner[64];
    size_t len = strlen(host);

    if (host[0] != '[')
        return inet_pton(AF_INET, host, bytes) == 1;
    if (len < 3 || len - 2 >= sizeof(inner) || host[len - 1] != ']')
        return 0;
    memcpy(inner, host + 1, len - 2);
    inner[len - 2] = '\0';
    return inet_pton(AF_INET6, inner, bytes) == 1;
}

static int is_host_allowed(const struct cw_http_server *server, const char *fields)
{
    char host[256], *port;
    size_t len;
    const char *value = find_host(fields);

    if (!value) /* HTTP/1.0, and not a browser */
        return 1;
    value += 5 + strspn(value + 5, " \t");
    len = strcspn(value, " \t\r\n");
    if (len >= sizeof(host))
        return 0;
    memcpy(host, value, len);
    host[len] = '\0';
    port = strrchr(host, ':');
    if (port && port[1 + strspn(port + 1, "0123456789")] == '\0')
        *port = '\0';
    if (is_address(host) || strcasecmp(host, "localhost") == 0)
        return 1;
    for (const char *const *name = server->host; name && *name; name++) {
        if (strcasecmp(*name, host) == 0)
            return 1;
    }
    return 0;
}

static void forbid_host(const struct serving *serving, struct client *client)
{
    static const char text[] = "403 Forbidden: the Host of the request is neither an address nor "
                               "localhost; cuwarden metrics --host=NAME allows a name\n";
    char *body = strdup(text);

    answer(serving, client, 403, "text/plain; charset=utf-8", body, strlen(text), 0);
}

/* "GET /metrics?x HTTP/1.1", then the header fields, of which only Host matters here. */
static void answer_request(const struct serving *serving, struct client *client)
{
    char *end = client->request + strcspn(client->request, "\r\n");
    char *target, *version;
    int is_head, is_allowed = is_host_allowed(serving->server, end), is_odd = has_two_hosts(end);

    *end = '\0';
    target = strchr(client->request, ' ');
    version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || target == client->request || target[1] != '/') {
        answer(serving, client, 400, NULL, NULL, 0, 0);
        return;
    }
    *target++ = '\0';
    *version++ = '\0';
    target[strcspn(target, "?#")] = '\0';
    is_head = strcmp(client->request, "HEAD") == 0;
    if (strncmp(version, "HTTP/", 5) != 0 || is_odd)
        answer(serving, client, 400, NULL, NULL, 0, 0);
    else if (strncmp(version, "HTTP/1.", 7) != 0)
        answer(serving, client, 505, NULL, NULL, 0, 0);
    else if (!is_head && strcmp(client->request, "GET") != 0)
        answer(serving, client, 405, NULL, NULL, 0, 0);
    else if (!is_allowed)
        forbid_host(serving, client);
    else
        answer_path(serving, client, target, is_head);
}

/* ---- clients ---- */

static int is_again(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Each returns -1 when the client is finished. */

static int receive(const struct serving *serving, struct client *client)
{
    ssize_t n =
        recv(client->fd, client->request + client->got, CW_HTTP_REQUEST_MAX - client->got, 0);

    if (n <= 0)
        return n < 0 && is_again() ? 0 : -1;
    client->got += (size_t)n;
    client->request[client->got] = '\0';
    if (memchr(client->request, '\0', client->got))
        answer(serving, client, 400, NULL, NULL, 0, 0);
    else if (strstr(client->request, "\r\n\r\n") || strstr(client->request, "\n\n"))
        answer_request(serving, client);
    else if (client->got == CW_HTTP_REQUEST_MAX)
        answer(serving, client, 431, NULL, NULL, 0, 0);
    return 0;
}

static int send_answer(struct client *client)
{
    ssize_t n =
        send(client->fd, client->answer + client->sent, client->len - client->sent, MSG_NOSIGNAL);

    if (n < 0)
        return is_again() ? 0 : -1;
    client->sent += (size_t)n;
    client->moved_ms = now_ms();
    if (client->sent < client->len)
        return 0;
    shutdown(client->fd, SHUT_WR);
    client->state = LINGERING;
    client->deadline_ms = now_ms() + LINGER_MS;
    return 0;
}

static int linger(struct client *client)
{
    ssize_t n = recv(client->fd, client->request, CW_HTTP_REQUEST_MAX, 0);

    return n > 0 || (n < 0 && is_again()) ? 0 : -1;
}

static int serve_client(const struct serving *serving, struct client *client, short events)
{
    int rc = 0;

    if (events && client->state == RECEIVING)
        rc = receive(serving, client);
    else if (events && client->state == LINGERING)
        rc = linger(client);
    if (rc == 0 && client->state == SENDING)
        rc = client->answer ? send_answer(client) : -1;
    if (rc != 0 || now_ms() < client->deadline_ms)
        return rc;
    if (client->state != RECEIVING || client->got == 0)
        return -1;
    answer(serving, client, 408, NULL, NULL, 0, 0);
    return 0;
}

static void close_client(struct client *client)
{
    close(client->fd);
    free(client->answer);
    free(client);
}

/* Who is evicted first: who has the answer, who is silent, who has not sent it all, who does not
 * read. 0: not to be evicted. */
static int rank(const struct client *client)
{
    switch (client->state) {
    case LINGERING:
        return 4;
    case RECEIVING:
        return client->got == 0 ? 3 : 2;
    default:
        return now_ms() >= client->moved_ms + LINGER_MS ? 1 : 0;
    }
}

/* Of equal rank the one that has been there longer. */
static int gives_way_to(const struct client *one, const struct client *other)
{
    return rank(one) != rank(other) ? rank(one) > rank(other)
                                    : one->deadline_ms < other->deadline_ms;
}

/* Frees a place if all are taken, so that idle clients cannot keep out active ones. Returns 0, or
 * -1 if all are being answered. */
static int make_place(struct serving *serving)
{
    unsigned first = serving->clients;

    for (unsigned i = 0; i < serving->clients; i++) {
        if (rank(serving->client[i]) != 0 &&
            (first == serving->clients || gives_way_to(serving->client[i], serving->client[first])))
            first = i;
    }
    if (first == serving->clients)
        return -1;
    close_client(serving->client[first]);
    serving->clients--;
    memmove(&serving->client[first], &serving->client[first + 1],
            (serving->clients - first) * sizeof(struct client *));
    return 0;
}

static void accept_client(struct serving *serving, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *client = fd >= 0 ? calloc(1, sizeof(*client)) : NULL;

    if (!client) {
        /* Out of descriptors: the listener stays ready, so wait instead of spinning. */
        if (fd < 0 && !is_again())
            (void)poll(NULL, 0, BREATH_MS);
        if (fd >= 0)
            close(fd);
        return;
    }
    client->fd = fd;
    client->deadline_ms = now_ms() + serving->server->timeout_ms;
    serving->client[serving->clients++] = client;
}

/* ---- serving ---- */

static struct timespec time_left(const struct serving *serving)
{
    uint64_t now = now_ms(), first = now + 60000;

    for (unsigned i = 0; i < serving->clients; i++) {
        const struct client *client = serving->client[i];

        if (client->deadline_ms < first)
            first = client->deadline_ms;
        /* Others may wait for the place of one that does not read. */
        if (client->state == SENDING && client->moved_ms + LINGER_MS > now &&
            client->moved_ms + LINGER_MS < first)
            first = client->moved_ms + LINGER_MS;
    }
    first = first > now ? first - now : 0;
    return (struct timespec){.tv_sec = (time_t)(first / 1000),
                             .tv_nsec = (long)(first % 1000) * 1000000};
}

static int has_place(const struct serving *serving)
{
    for (unsigned i = 0; i < serving->clients; i++) {
        if (rank(serving->client[i]) != 0)
            return 1;
    }
    return serving->clients < CW_HTTP_CLIENTS;
}

/* Accepts nobody while all clients are being answered; others wait in the listener's queue. */
static unsigned fill_polls(const struct serving *serving, struct pollfd *polls)
{
    unsigned count = 0;

    for (unsigned i = 0; i < serving->clients; i++)
        polls[count++] =
            (struct pollfd){.fd = serving->client[i]->fd,
                            .events = serving->client[i]->state == SENDING ? POLLOUT : POLLIN};
    for (unsigned i = 0; has_place(serving) && i < serving->server->listeners; i++)
        polls[count++] = (struct pollfd){.fd = serving->server->listener[i], .events = POLLIN};
    return count;
}

static void serve_all(struct serving *serving, const struct pollfd *polls, unsigned count)
{
    unsigned before = serving->clients, kept = 0;

    for (unsigned i = 0; i < before; i++) {
        struct client *client = serving->client[i];

        if (serve_client(serving, client, polls[i].revents) == 0)
            serving->client[kept++] = client;
        else
            close_client(client);
    }
    serving->clients = kept;
    for (unsigned i = before; i < count; i++) {
        if (polls[i].revents && (serving->clients < CW_HTTP_CLIENTS || make_place(serving) == 0))
            accept_client(serving, polls[i].fd);
    }
}

int cw_http_serve(struct cw_http_server *server, const volatile sig_atomic_t *ended,
                  const sigset_t *mask)
{
    struct pollfd polls[CW_HTTP_CLIENTS + CW_HTTP_LISTENERS];
    struct serving serving = {.server = server};
    int rc = 0;

    while (!*ended) {
        unsigned count = fill_polls(&serving, polls);
        struct timespec timeout = time_left(&serving);
        int ready = ppoll(polls, count, &timeout, mask);

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0) {
            cw_cli_error("cannot wait for clients: %s", strerror(errno));
            rc = -1;
            break;
        }
        serve_all(&serving, polls, count);
    }
    for (unsigned i = 0; i < serving.clients; i++)
        close_client(serving.client[i]);
    return rc;
}

void cw_http_close(struct cw_http_server *server)
{
    for (unsigned i = 0; i < server->listeners; i++)
        close(server->listener[i]);
    server->listeners = 0;
}
