/* SPDX-License-Identifier: MIT */
/* This process's part in the sums. See scope.h. */
#include "core/limits/scope.h"

#include <fcntl.h>

#include "base/cgroup.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/process/session.h"
#include "live/group_file.h"

#define REAP_NS UINT64_C(1000000000)

enum { OUTSIDE, JOINED, FAILED };

_Atomic int cw_scopes_on;

static struct {
    struct cw_lock lock;
    const struct cw_options *options;
    _Atomic int state[CW_MAX_DEVICES];
    struct cw_group_file file[CW_MAX_DEVICES]; /* opened under the lock */
    _Atomic uint64_t reap_ns[CW_MAX_DEVICES];  /* when the dead are looked for again */
} self = {.lock = CW_LOCK_INIT(CW_RANK_SCOPE)};

void cw_scope_init(const struct cw_options *options)
{
    self.options = options;
}

/* A forked child begins with nothing, in a slot of its own. */
void cw_scope_reset(void)
{
    cw_lock_reset(&self.lock);
    for (unsigned d = 0; d < CW_MAX_DEVICES; d++) {
        if (atomic_load(&self.state[d]) == JOINED)
            cw_group_file_close(&self.file[d]);
        atomic_store(&self.state[d], OUTSIDE);
        atomic_store(&self.reap_ns[d], 0);
    }
    atomic_store(&cw_scopes_on, 0);
}

/* ---- which scope ---- */

static uint64_t add_place(uint64_t key, const char *path)
{
    int fd = cw_sys_open(path, O_RDONLY, 0);
    struct stat info;

    if (fd < 0)
        return cw_hash_mix(key, 0);
    if (cw_sys_stat(fd, &info) == 0)
        key = cw_hash_mix(cw_hash_mix(key, (uint64_t)info.st_dev), (uint64_t)info.st_ino);
    cw_sys_close(fd);
    return key;
}

/* The same in all processes of it, and in no other. */
static uint64_t key_of(uint8_t device)
{
    uint64_t key = add_place(CW_HASH_SEED, "/proc/self/ns/mnt");
    const uint8_t *uuid = cw_device_state(device)->uuid;
    char group[CW_CGROUP_MAX];

    if (cw_cgroup_path("", group, sizeof(group)) == 0)
        key = add_place(key, group);
    for (unsigned i = 0; i < 16; i++)
        key = cw_hash_mix(key, uuid[i]);
    return key;
}

void cw_scope_join(uint8_t device)
{
    int error;

    if (device >= CW_MAX_DEVICES || atomic_load(&self.state[device]) != OUTSIDE)
        return;
    cw_lock_acquire(&self.lock);
    if (atomic_load(&self.state[device]) != OUTSIDE) {
        cw_lock_release(&self.lock);
        return;
    }
    error = cw_group_file_open(&self.file[device], self.options->tmpdir, key_of(device));
    cw_group_file_show(&self.file[device], cw_usage_held_sum(device));
    atomic_store(&self.state[device], error == 0 ? JOINED : FAILED);
    atomic_store(&cw_scopes_on, 1);
    cw_lock_release(&self.lock);
    if (error != 0)
        cw_log(
            CW_LOG_WARN,
            "CUWARDEN_LIMIT=platform: the processes of the container cannot be added up: no file "
            "in /dev/shm or TMPDIR: %s (errno %d); this process alone is held to the limit",
            cw_reason(error), error);
}

/* ---- the sum ---- */

static int is_joined(uint8_t device)
{
    return device < CW_MAX_DEVICES && atomic_load(&self.state[device]) == JOINED;
}

/* What threads have as slack counts until it is taken back: once, before anything is refused. */
static int claim_locked(uint8_t device, uint64_t bytes, uint64_t spare, uint64_t most)
{
    for (int is_settled = 0;; is_settled = 1) {
        uint64_t held = cw_usage_held_sum(device) + spare;

        if (cw_group_file_claim(&self.file[device], held - bytes, bytes, most) == 0)
            return 0;
        if (is_settled)
            return -1;
        cw_usage_settle_slack();
    }
}

int cw_scope_reserve(uint8_t device, uint64_t bytes, uint64_t spare, uint64_t own, uint64_t most)
{
    int rc;

    if (!is_joined(device))
        return cw_usage_reserve(device, bytes, own < most ? own : most);
    cw_lock_acquire(&self.lock);
    rc = cw_usage_reserve(device, bytes, own);
    if (rc == 0) {
        rc = claim_locked(device, bytes, spare, most);
        if (rc != 0)
            cw_usage_sub(device, 0, bytes);
    }
    cw_lock_release(&self.lock);
    return rc;
}

void cw_scope_show(uint8_t device, uint64_t spare)
{
    if (!cw_scope_is_on() || !is_joined(device))
        return;
    cw_lock_acquire(&self.lock);
    cw_usage_settle_slack();
    cw_group_file_show(&self.file[device], cw_usage_held_sum(device) + spare);
    cw_lock_release(&self.lock);
}

void cw_scope_show_all(void)
{
    for (unsigned d = 0; d < CW_MAX_DEVICES; d++)
        if (is_joined((uint8_t)d))
            cw_scope_show((uint8_t)d, cw_driver_pool_spare((uint8_t)d));
}

/* What those have that ended without a word, looked for now and then. */
static void reap(uint8_t device)
{
    uint64_t now = cw_session_now(), due = atomic_load(&self.reap_ns[device]);

    if (now >= due && atomic_compare_exchange_strong(&self.reap_ns[device], &due, now + REAP_NS))
        (void)cw_group_file_reap(&self.file[device]);
}

uint64_t cw_scope_others(uint8_t device)
{
    if (!cw_scope_is_on() || !is_joined(device))
        return 0;
    reap(device);
    return cw_group_file_others(&self.file[device]);
}
