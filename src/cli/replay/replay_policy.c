/* SPDX-License-Identifier: MIT */
/* One process per policy: the core's state is the process's. See replay_policy.h. */
#include "cli/replay/replay_policy.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdint.h>

#include "base/out.h"
#include "cli/replay/replay_model.h"
#include "base/compiler.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

/* Values that override the user's for this policy. */
static const struct {
    const char *name;
    const struct cw_replay_engine *engine;
    struct {
        const char *option, *value;
    } set[2];
} known[CW_POLICIES_MAX] = {
    {"native", &cw_replay_core, {{"MODE", "track"}, {"LIMIT", "none"}}}, /* as without us */
    {"track", &cw_replay_core, {{"MODE", "track"}}},
    {"pool", &cw_replay_core, {{"MODE", "pool"}}},
    {"inference", &cw_replay_core, {{"MODE", "pool"}, {"PRESET", "inference"}}},
    {"constrained", &cw_replay_core, {{"MODE", "pool"}, {"PRESET", "constrained"}}},
    {"deferred", &cw_replay_core, {{"MODE", "pool"}, {"FREE_SYNC", "deferred"}}},
    {CW_POLICY_UNBOUNDED, &cw_replay_unbounded, {{0}}},
    {"pytorch", &cw_replay_pytorch, {{0}}},
    {"rmm", &cw_replay_rmm, {{0}}},
};

/* A replay has no stacks and writes no report; managed memory is not modelled. */
static const struct {
    const char *option, *value;
} fixed[] = {
    {"LIVE", "off"}, {"STACKS", "off"}, {"GROWTH", "off"}, {"FALLBACK", "off"}, {"FAIL", "off"},
};

static void set(struct cw_options *options, const char *option, const char *value)
{
    char why[CW_OPTION_LINE_MAX];

    if (cw_options_set(options, option, value, why, sizeof(why)) != 0)
        cw_cli_error("%s=%s: %s", option, value, why);
}

static void add(struct cw_policies *policies, const char *name,
                const struct cw_replay_engine *engine, const struct cw_options *options)
{
    struct cw_policy *policy = &policies->policy[policies->count++];

    policy->name = name;
    policy->engine = engine;
    policy->options = *options;
    for (size_t i = 0; i < CW_ARRAY_LEN(fixed); i++)
        set(&policy->options, fixed[i].option, fixed[i].value);
}

void cw_policies_one(struct cw_policies *policies, const struct cw_options *options)
{
    policies->count = 0;
    add(policies, options->mode == CW_MODE_POOL ? "pool" : "track", &cw_replay_core, options);
}

void cw_policies_all(struct cw_policies *policies, const struct cw_options *options)
{
    policies->count = 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(known); i++) {
        struct cw_options own = *options;

        for (size_t k = 0; k < CW_ARRAY_LEN(known[i].set) && known[i].set[k].option != NULL; k++)
            set(&own, known[i].set[k].option, known[i].set[k].value);
        add(policies, known[i].name, known[i].engine, &own);
    }
}

uint64_t cw_policy_ceiling(const struct cw_policies *policies, const struct cw_policy *policy)
{
    uint64_t least = policies->device_bytes;

    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        const struct cw_replay_device *device = &policy->result.device[i];

        if (device->is_used && device->limit != 0 && device->limit < least)
            least = device->limit;
    }
    return least;
}

/* ---- running ---- */

static int read_all(int fd, void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = read(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int run_here(const struct cw_policies *policies, struct cw_policy *policy)
{
    return cw_replay_run(policies->trace, policy->engine, &policy->options, policies->device_bytes,
                         &policy->result);
}

/* The child's process id, or -1; *out_fd is a pipe for its result. */
static pid_t start(const struct cw_policies *policies, struct cw_policy *policy, int *out_fd)
{
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        int rc;

        close(ends[0]);
        rc = run_here(policies, policy);
        if (rc == 0)
            rc = cw_write(ends[1], &policy->result, sizeof(policy->result), 0);
        _exit(rc == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE);
    }
    close(ends[1]);
    if (child < 0)
        close(ends[0]);
    *out_fd = ends[0];
    return child;
}

/* 1 if the result arrived; 0 if the child printed a message or died. */
static int finish(struct cw_policy *policy, pid_t child, int fd)
{
    int rc = read_all(fd, &policy->result, sizeof(policy->result)), status = 0;

    close(fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        cw_cli_error("the replay of policy %s was killed by signal %d", policy->name,
                     WTERMSIG(status));
    return rc == 0 && status == 0;
}

/* Runs policies from..to-1 in parallel. */
static int run_some(struct cw_policies *policies, unsigned from, unsigned to)
{
    pid_t child[CW_POLICIES_MAX];
    int fd[CW_POLICIES_MAX], good = 1;

    for (unsigned i = from; i < to; i++) {
        child[i] = start(policies, &policies->policy[i], &fd[i]);
        if (child[i] < 0)
            cw_cli_error("cannot create a process: %s", strerror(errno));
    }
    for (unsigned i = from; i < to; i++)
        good &= child[i] > 0 && finish(&policies->policy[i], child[i], fd[i]);
    return good ? 0 : -1;
}

int cw_policies_run(struct cw_policies *policies)
{
    if (policies->count == 1)
        return run_here(policies, &policies->policy[0]);
    /* The first one alone, so that errors in the file are reported once. */
    if (run_some(policies, 0, 1) != 0)
        return -1;
    return run_some(policies, 1, policies->count);
}
