// What binds an expansion: one row read, K written, in several patterns, beside copies and writes.
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o patterns expand_patterns.cu
//   ./patterns > expand_patterns_h200.jsonl
// One line a pattern: median, least and most of five times fifteen launches over three memory sets.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#define CHECK(x)                                                            \
  do {                                                                      \
    cudaError_t e = (x);                                                    \
    if (e) fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)), exit(1); \
  } while (0)
using Word = int4;
constexpr int SMS = 132, SHARED = 224 * 1024, SETS = 3;

__device__ __forceinline__ uint32_t shared(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ Word take(const Word* p) {
  Word v;
  uint64_t once;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.s32 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p), "l"(once));
  return v;
}

// A block a token, its row in registers. `group` tokens' rows are fetched into L2 together, eight
// by each of the first blocks of the group before; 0: none. `few`: rows come from 64 tokens only.
template <int THREADS, int HELD, int K, bool STREAM>
__global__ void __launch_bounds__(THREADS) expand(const Word* x, Word* out, const int* places,
                                                  int tokens, int words, int group, bool few) {
  const int n = blockIdx.x;
  if (group && n % group * 8 < group && threadIdx.x < 8) {
    const int soon = (n / group + 1) * group + n % group * 8 + threadIdx.x;
    if (soon < tokens)
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + (size_t)soon * words),
                   "r"(words * 16)
                   : "memory");
  }
  int to[K];
#pragma unroll
  for (int k = 0; k < K; k++) to[k] = places[n * K + k];
  const Word* row = x + (size_t)(few ? n % 64 : n) * words;
  Word held[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const int w = i * THREADS + threadIdx.x;
    if (w < words) held[i] = take(row + w);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    Word* at = out + (size_t)to[k] * words;
#pragma unroll
    for (int i = 0; i < HELD; i++) {
      const int w = i * THREADS + threadIdx.x;
      if (w < words) STREAM ? __stcs(at + w, held[i]) : (void)(at[w] = held[i]);
    }
  }
}

// A warp: as many rows as fit come into shared memory together, then all of them leave.
template <int K>
__global__ void __launch_bounds__(32)
    phased(const Word* x, Word* out, const int* places, int tokens, int words, int fit) {
  extern __shared__ __align__(128) char room[];
  __shared__ __align__(8) uint64_t full;
  const int bytes = words * 16, share = (tokens + gridDim.x - 1) / gridDim.x;
  const int rounds = (share + fit - 1) / fit, each = (share + rounds - 1) / rounds;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  for (int r = 0; r < rounds; r++) {
    const int first = (r * gridDim.x + blockIdx.x) * each, count = min(each, tokens - first);
    if (count <= 0) break;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full)),
                   "r"(bytes * count)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(shared(room)),
          "l"(x + (size_t)first * words), "r"(bytes * count), "r"(shared(&full))
          : "memory");
    }
    asm volatile(
        "{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra D; bra W; D: "
        "}" ::"r"(shared(&full)),
        "r"(r & 1)
        : "memory");
    for (int e = threadIdx.x; e < count * K; e += 32)
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       out + (size_t)places[first * K + e] * words),
                   "r"(shared(room + e / K * bytes)), "r"(bytes)
                   : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void write(Word* out, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step)
    out[i] = make_int4(i, 1, 2, 3);
}
__global__ void copy(const Word* a, Word* b, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i];
}

// Places of a random routing to K of `experts` experts, entries of an expert in order.
std::vector<int> routing(int tokens, int topk, int experts) {
  std::mt19937 draw(7);
  std::vector<int> expert(tokens * topk), place(tokens * topk), all(experts), next(experts + 1, 0);
  std::iota(all.begin(), all.end(), 0);
  for (int n = 0; n < tokens; n++)
    for (int k = 0; k < topk; k++) {
      std::swap(all[k], all[k + draw() % (experts - k)]);
      expert[n * topk + k] = all[k];
      next[all[k] + 1]++;
    }
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (size_t i = 0; i < expert.size(); i++) place[i] = next[expert[i]]++;
  return place;
}

template <int K, int THREADS, int HELD, int MORE, int FEWER>
void shape(int tokens, int experts, int row) {
  const int words = row / 16, positions = tokens * K;
  std::vector<int> places = routing(tokens, K, experts), ascending(positions);
  std::iota(ascending.begin(), ascending.end(), 0);
  auto upload = [](const std::vector<int>& v) {
    int* p;
    CHECK(cudaMalloc(&p, v.size() * 4));
    CHECK(cudaMemcpy(p, v.data(), v.size() * 4, cudaMemcpyHostToDevice));
    return p;
  };
  int *routed = upload(places), *consecutive = upload(ascending);
  const double bytes = (double)tokens * row + (double)positions * row;
  const size_t half = (size_t)(bytes / 32);
  std::vector<Word*> xs(SETS), outs(SETS);
  for (int s = 0; s < SETS; s++) {
    CHECK(cudaMalloc(&xs[s], std::max((size_t)tokens * row, half * 16)));
    CHECK(cudaMalloc(&outs[s], (size_t)bytes + 64));
    write<<<1024, 256>>>(xs[s], (size_t)tokens * words);
  }
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  auto time = [&](const std::string& name, std::function<void(Word*, Word*)> run) {
    for (int s = 0; s < SETS; s++) run(xs[s], outs[s]);
    CHECK(cudaDeviceSynchronize());
    std::vector<float> us(5);
    for (float& u : us) {
      CHECK(cudaEventRecord(from));
      for (int q = 0; q < 15; q++) run(xs[q % SETS], outs[q % SETS]);
      CHECK(cudaEventRecord(to));
      CHECK(cudaEventSynchronize(to));
      CHECK(cudaEventElapsedTime(&u, from, to));
      u *= 1000.f / 15;
    }
    CHECK(cudaGetLastError());
    std::sort(us.begin(), us.end());
    printf(
        "{\"record\": \"pattern\", \"tokens\": %d, \"row_bytes\": %d, \"topk\": %d, "
        "\"pattern\": \"%s\", \"us\": %.2f, \"least\": %.2f, \"most\": %.2f, \"bytes\": %.0f}\n",
        tokens, row, K, name.c_str(), us[2], us[0], us[4], bytes);
  };
  time("copy", [&](Word* x, Word* o) { copy<<<(half + 511) / 512, 512>>>(x, o, half); });
  time("write", [&](Word*, Word* o) { write<<<SMS * 16, 512>>>(o, (size_t)(bytes / 16)); });
  auto add = [&](const std::string& name, auto kernel, int threads, int* at, int group, bool few) {
    time(name, [=](Word* x, Word* o) {
      kernel<<<tokens, threads>>>(x, o, at, tokens, words, group, few);
    });
  };
  auto plain = expand<THREADS, HELD, K, false>, streamed = expand<THREADS, HELD, K, true>;
  auto wider = expand<MORE, FEWER, K, true>;
  add("consecutive", plain, THREADS, consecutive, 0, false);
  add("consecutive, streaming", streamed, THREADS, consecutive, 0, false);
  add("consecutive, streaming, reads from L2 only", streamed, THREADS, consecutive, 0, true);
  add("routed, reads from L2 only", plain, THREADS, routed, 0, true);
  add("routed, streaming, reads from L2 only", streamed, THREADS, routed, 0, true);
  add("routed", plain, THREADS, routed, 0, false);
  add("routed, streaming", streamed, THREADS, routed, 0, false);
  add("routed, streaming, more threads", wider, MORE, routed, 0, false);
  for (int group : {128, 256, 512, 1024, 2048, 4096}) {
    const std::string tail = ", " + std::to_string(group) + " rows fetched together";
    add("routed" + tail, plain, THREADS, routed, group, false);
    add("routed, streaming" + tail, streamed, THREADS, routed, group, false);
    add("routed, streaming, more threads" + tail, wider, MORE, routed, group, false);
  }
  for (int blocks : {1, 2, 4}) {
    const int fit = SHARED / blocks / row;
    CHECK(cudaFuncSetAttribute(phased<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, fit * row));
    time("routed, read then written, blocks an SM: " + std::to_string(blocks),
         [=](Word* x, Word* o) {
           phased<K><<<SMS * blocks, 32, fit * row>>>(x, o, routed, tokens, words, fit);
         });
  }
  for (int s = 0; s < SETS; s++) cudaFree(xs[s]), cudaFree(outs[s]);
}

int main() {
  shape<8, 128, 7, 256, 4>(4096, 256, 14336);
  shape<6, 64, 5, 128, 3>(8192, 72, 5120);
}
