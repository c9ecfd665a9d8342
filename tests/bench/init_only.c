/* SPDX-License-Identifier: MIT */
/* The least that a CUDA program does: cuInit, for the start-up cost of the library. */
int cuInit(unsigned flags);

int main(void)
{
    return cuInit(0);
}
