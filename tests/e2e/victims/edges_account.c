/* SPDX-License-Identifier: MIT */
/* What the bare driver would have taken. See edges_account.h. */
#include "edges_account.h"

#define LEAST         ((size_t)512)
#define BUDGET_SHARES 200 /* half a percent */

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t read_size(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    size_t size = text ? strtoull(text, &end, 0) : otherwise;

    if (text && (*end == 'M' || *end == 'K' || *end == 'G'))
        size <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
    return size;
}

void account_begin(struct account *out)
{
    unsigned long long used, total;
    size_t available;

    *out = (struct account){.unit = read_size("CUSIM_ALLOC_GRANULARITY", LEAST)};
    if (cusim_memory(0, &used, &total) != 0)
        violated("there is no device 0");
    WORKS(cuMemGetInfo(&available, &out->total));
    out->is_limited = out->total < total;
    out->fixed = out->is_limited ? 0 : read_size("CUSIM_CONTEXT_BYTES", 16 * MIB);
    if (out->is_limited)
        out->unit = LEAST;
}

static bool is_packed(const struct account *account, size_t bytes)
{
    return round_up(bytes, LEAST) <= account->unit / 2;
}

size_t account_used(const struct account *account)
{
    return account->fixed + account->whole + round_up(account->packed, account->unit);
}

void account_add(struct account *account, size_t bytes)
{
    account->asked += bytes;
    if (is_packed(account, bytes))
        account->packed += round_up(bytes, LEAST);
    else
        account->whole += round_up(bytes, account->unit);
}

void account_sub(struct account *account, size_t bytes)
{
    account->asked -= bytes;
    if (is_packed(account, bytes))
        account->packed -= round_up(bytes, LEAST);
    else
        account->whole -= round_up(bytes, account->unit);
}

size_t account_after(const struct account *account, size_t bytes)
{
    struct account after = *account;

    account_add(&after, bytes);
    return account_used(&after);
}

size_t account_budget(const struct account *account)
{
    return account->total / BUDGET_SHARES;
}

void account_judge(struct account *account, size_t bytes, CUresult code)
{
    size_t after = account_after(account, bytes);
    size_t least = account->is_limited ? account->asked + bytes : after;

    if (code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY)
        expect(code, CUDA_SUCCESS, "allocation");
    edges.checks++;
    if (code == CUDA_SUCCESS && least > account->total)
        violated("%zu bytes are granted, with which %zu of %zu would be taken", bytes, least,
                 account->total);
    if (code != CUDA_SUCCESS && after <= account->total - account_budget(account))
        violated("%zu bytes are refused, with which %zu of %zu would be taken, %.2f %%", bytes,
                 after, account->total, 100.0 * (double)after / (double)account->total);
    if (code != CUDA_SUCCESS && after <= account->total) {
        account->is_refused = true;
        trace("refused, with which %zu of %zu would be taken", after, account->total);
    }
    if (!edges.is_native)
        return;
    if (code != CUDA_SUCCESS && after <= account->total)
        violated("the driver refuses %zu bytes, with which %zu of %zu would be taken", bytes, after,
                 account->total);
}
