/* SPDX-License-Identifier: MIT */
/* A program of symbols.test. */
#include "victim.h"
namespace app {
template <typename T> struct Pool {
  __attribute__((always_inline)) void grow(T rows) { CUdeviceptr block; MUST(cuMemAlloc(&block, rows)); } // line of grow */
};
static NOINLINE int make(Pool<int> &pool, int rows)
{
  pool.grow(rows); // line of make */
  return rows;
}
}
int main()
{
  app::Pool<int> pool;
  use_device(0);
  return app::make(pool, 5000) - 5000;
}
