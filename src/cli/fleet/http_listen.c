/* SPDX-License-Identifier: MIT */
/* The listening sockets of a server. See http_server.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdint.h>

#include "base/options/option_values.h"
#include "cli/fleet/http_server.h"
#include "cli/ui/message.h"

#define BACKLOG 128

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int fail_form(const char *text)
{
    cw_cli_error("--listen: '%s' is not an address with a port, as in 127.0.0.1:9835 or [::1]:9835",
                 text);
    return -2;
}

/* The length of the address, or 0 if it is invalid. */
static socklen_t parse_host(const char *host, int is_v6, uint16_t port, union address *out)
{
    memset(out, 0, sizeof(*out));
    if (is_v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1 ? sizeof(out->v6) : 0;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    return inet_pton(AF_INET, host, &out->v4.sin_addr) == 1 ? sizeof(out->v4) : 0;
}

static socklen_t parse(const char *text, union address *out)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2];
    size_t len = colon ? (size_t)(colon - text) : 0;
    int is_v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
    uint64_t port;

    if (len == 0 || len >= sizeof(host) || cw_count_parse(colon + 1, &port) != 0 || port > 65535)
        return 0;
    snprintf(host, sizeof(host), "%.*s", (int)(is_v6 ? len - 2 : len), text + is_v6);
    return parse_host(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, is_v6, (uint16_t)port,
                      out);
}

static int is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static void print_bound(int fd, char *bound, size_t cap)
{
    union address address;
    socklen_t len = sizeof(address);
    char host[INET6_ADDRSTRLEN] = "?";

    memset(&address, 0, sizeof(address));
    (void)getsockname(fd, &address.any, &len);
    if (address.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
        snprintf(bound, cap, "[%s]:%u", host, (unsigned)ntohs(address.v6.sin6_port));
    } else {
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
        snprintf(bound, cap, "%s:%u", host, (unsigned)ntohs(address.v4.sin_port));
    }
}

static int open_listener(const union address *address, socklen_t len)
{
    static const int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int saved;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, &address->any, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int cw_http_listen(struct cw_http_server *server, const char *address, int any, char *bound,
                   size_t cap)
{
    union address parsed;
    socklen_t len = parse(address, &parsed);
    int fd;

    if (len == 0)
        return fail_form(address);
    if (!any && !is_loopback(&parsed)) {
        cw_cli_error("--listen: '%s' is reachable from other machines, where anyone could read the "
                     "metrics; add --listen-any to allow that",
                     address);
        return -2;
    }
    if (server->listeners == CW_HTTP_LISTENERS) {
        cw_cli_error("--listen: too many addresses ('%s'): the maximum is %d", address,
                     CW_HTTP_LISTENERS);
        return -2;
    }
    fd = open_listener(&parsed, len);
    if (fd < 0) {
        cw_cli_error("cannot listen on '%s': %s", address, strerror(errno));
        return -1;
    }
    print_bound(fd, bound, cap);
    server->listener[server->listeners++] = fd;
    return 0;
}
