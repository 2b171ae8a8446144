// In the order of their needs.
// clang-format off
#include "gpu_model.h"
#include "keys.cuh"
#include "row.cuh"
#include "output.cuh"
#include "layout.cuh"
#include "produce.cuh"
#include "search.cuh"
#include "stream.cuh"
#include "select.cuh"
// clang-format on

using namespace ak;

template <class F, int CLUSTER>
void run(const Arguments& a, int grid, unsigned seed) {
  using P = Layout<F, 64, 4, 2048, 5, CLUSTER>;
  launch(grid, CLUSTER, P::THREADS + 32, sizeof(Shared<P>), seed,
         [&](void* shared) { select_rows<P>(shared, a); });
}

extern "C" void select_on_cpu(const Arguments* a, int format, int cluster, int grid, unsigned seed,
                              long long low, long long high) {
  read_low = low, read_high = high;
  if (format == 0) cluster == 1 ? run<Bf16, 1>(*a, grid, seed) : run<Bf16, 4>(*a, grid, seed);
  if (format == 1) cluster == 1 ? run<Fp16, 1>(*a, grid, seed) : run<Fp16, 4>(*a, grid, seed);
  if (format == 2) cluster == 1 ? run<Fp32, 1>(*a, grid, seed) : run<Fp32, 4>(*a, grid, seed);
}
