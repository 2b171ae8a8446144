// The consuming threads: a row's blocks pass a threshold that rises, and what passes is kept.
namespace ak {

template <class P>
struct Consumer {
  using F = typename P::F;
  using K = Keys<F>;
  using Word = typename P::Word;
  static constexpr int V = P::VECTORS;
  // Candidates at which a block more might not fit.
  static constexpr int ROOM = P::CAPACITY - P::BLOCK;
  // Candidates that reach the end of a search.
  static constexpr int MOST = P::CAPACITY < MAX_TOPK + FEW ? P::CAPACITY : MAX_TOPK + FEW;

  Shared<P>& s;
  const Arguments& a;
  const int tid, part;
  Selector<P> select;
  int slot = 0;
  u32 parity = 0;
  // The threshold: of equal keys, places after `late` are below it. From `ceiling` on, everything
  // was appended before.
  u32 floor, late, ceiling;

  AK_INLINE Consumer(Shared<P>& shared, const Arguments& arguments, int part_)
      : s(shared), a(arguments), tid(threadIdx.x), part(part_), select(shared, part_) {}

  AK_INLINE void sync() const { sync_first<P::THREADS>(); }

  AK_INLINE int slot_of(int ahead) const {
    const int at = slot + ahead;
    return at < P::STAGES ? at : at - P::STAGES;
  }
  AK_INLINE void wait_full(int ahead) const {
    barrier_wait(&s.full[slot_of(ahead)], slot + ahead < P::STAGES ? parity : parity ^ 1);
  }
  AK_INLINE void release(int count) {  // after a barrier of all consumers
    for (int i = 0; i < count; ++i) {
      if (tid == 0) barrier_arrive(&s.empty[slot]);
      if (++slot == P::STAGES) slot = 0, parity ^= 1;
    }
  }

  // A key that at least k elements of the window reach, or so a sample of it says.
  AK_INLINE u32 first_floor(const Bounds& b, int window, int k) {
    constexpr int STEP = F::BITS - LOG_BINS;
    select.clear_bins();
    for (int i = 0; i < window; ++i) wait_full(i);
    sync();
    constexpr int PER_BLOCK = P::THREADS * V;
#pragma unroll
    for (int q = 0; q < (F::BITS == 16 ? 1 : 2); ++q) {
      constexpr int SAMPLES = F::BITS == 16 ? 1 : 2;
      const int v = (q * P::THREADS + tid) * (window * PER_BLOCK) / (SAMPLES * P::THREADS);
      if (window) {
        const int at = slot_of(v / PER_BLOCK), in = v % PER_BLOCK;
        const uint4 x = ((const uint4*)s.ring[at])[in];
        const u32 w[4] = {x.x, x.y, x.z, x.w};
        const int place = s.block[at] * P::BLOCK + in * P::PER;
#pragma unroll
        for (int e = 0; e < P::PER; ++e) {
          const u32 bits = F::BITS == 32 ? w[e] : w[e / 2] >> (e % 2 * 16) & 0xffff;
          if (place + e >= b.first && place + e < b.last) atomicAdd(&s.bins[K::of(bits) >> STEP], 1u);
        }
      }
    }
    const float all = (float)min(b.last - b.first, P::CLUSTER * P::WINDOW * P::BLOCK);
    bool none = false;
    const auto found = select.template scan<true>([&](int total) {
      const float mean = (float)k / all * (float)total;
      const int rank = (int)(mean + 3.0f * sqrtf(mean)) + 2;
      none = rank >= total;
      return (u32)(none ? 1 : rank);
    });
    return none || found.total == 0 ? 0 : (u32)found.bin << STEP;
  }

  // Appends what passes in the block that is next but `ahead`; true to all if there are now more
  // than `limit` candidates.
  AK_INLINE bool filter(const Bounds& b, int ahead, int limit) {
    const int at = slot_of(ahead), lane = lane_of();
    wait_full(ahead);
    const int block = s.block[at], first = block * P::BLOCK;
    const uint4* in = (const uint4*)s.ring[at];
    uint4 x[V];
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = in[v * P::THREADS + tid];
    // The block of `late` was visited: a block is before it, or behind it, as a whole.
    const bool loose = (u32)first <= late;
    u32 m = passing<F, V>(x, K::limit(loose ? floor : floor + 1));
    if (!loose && floor >= K::NAN_) m = 0;
    if (ceiling) m &= ~passing<F, V>(x, K::limit(ceiling));
    if (first < b.first || first + P::BLOCK > b.last) {
      for (u32 left = m; left; left &= left - 1) {
        const int j = __ffs(left) - 1;
        const int place = first + element(j);
        if (place < b.first || place >= b.last) m &= ~(1u << j);
      }
    }
    bool check = false;
    if (__any_sync(ALL_LANES, m != 0)) {
      const int mine = __popc(m);
#if AK_APPEND == 0
      // One lane takes room for all: a sum over the lanes below, a ballot for each bit of the counts.
      int below = 0, all = 0;
#pragma unroll
      for (int i = 0; 1 << i <= V * P::PER; ++i) {
        const u32 votes = __ballot_sync(ALL_LANES, mine >> i & 1);
        below += __popc(votes & lanes_below()) << i;
        all += __popc(votes) << i;
      }
      int to = 0;
      if (lane == 0) to = atomicAdd(&s.count, all);
      to = __shfl_sync(ALL_LANES, to, 0);
      check = to + all > limit;
      to += below;
#else
      int to = 0;
      if (mine) {
        to = atomicAdd(&s.count, mine);
        check = to + mine > limit;
      }
#endif
      while (m) {
        const int q = element(__ffs(m) - 1);
        m &= m - 1;
        s.words[to] = ((const Word*)in)[q];
        s.places[to] = first + q;
        ++to;
      }
    }
    return sync_first_or<P::THREADS>(check);
  }

  // Where in a block bit j of a thread's hits lies.
  AK_INLINE int element(int j) const {
    const int word = j & 15;
    return ((word >> 2) * P::THREADS + tid) * P::PER + (word & 3) * (P::PER / 4) + (j >> 4);
  }

  AK_INLINE void raise(u32 key, u32 place) {
    if (key > floor || (key == floor && place < late)) floor = key, late = place;
  }

  // After n candidates: a higher threshold, and room for a block. Returns what is left.
  AK_INLINE int tighten(int n, int k) {
    select.count_new(n);
    const auto found = select.template scan<false>([&](int total) { return (u32)min(k, total); });
    raise(select.floor_of(found.bin), LAST_PLACE);
    if (n <= ROOM) return n;
    Range r = select.range_of(found);
    select.template narrow<false>(r, n, k, (ROOM - k) / 4, 0);
    select.keep(r, n, k, false);
    raise(r.lo, LAST_PLACE - r.plo);
    select.rebase(r.lo);
    return r.above + r.inside;
  }

  // Called by all where filter saw the limit passed: s.count stands still until all have read it.
  AK_INLINE int look(int k) {
    int n = s.count;
    sync();
    if (n >= k) {
      const int left = tighten(n, k);
      if (left != n) {
        if (tid == 0) s.count = left;
        sync();
        n = left;
      }
    }
    return min(ROOM, n < k ? k - 1 : n + max(k / 4, 256));
  }

  AK_INLINE int count_all() {
    if constexpr (P::CLUSTER > 1) {
      if (tid < P::CLUSTER) *of_peer(&s.counts[part], tid) = s.count;
      select.sync_cluster();
      int all = 0;
      for (int c = 0; c < P::CLUSTER; ++c) all += s.counts[c];
      return all;
    } else {
      return s.count;
    }
  }

  // The candidates of this CTA's share of a row; returns how many.
  AK_INLINE int stream(const Bounds& b, int k) {
    const int blocks = (b.last + P::BLOCK - 1) / P::BLOCK;
    const int shares = (blocks - part + P::CLUSTER - 1) / P::CLUSTER;
    int next = 0, limit = min(ROOM, k - 1);
    if (tid == 0) s.count = 0;
    floor = 0, late = LAST_PLACE, ceiling = 0;
    const int window = min(shares, P::WINDOW);
    if (b.last - b.first > 2 * k) floor = first_floor(b, window, k);
    select.rebase(floor);
    if (floor) {
      limit = ROOM;
      for (; next < window; ++next) {
        if (filter(b, next, limit)) limit = look(k);
      }
      if (count_all() < k) {
        // Too few of the window reached the first threshold: what is below it passes as well.
        sync();
        ceiling = floor, floor = 0;
        select.rebase(0);
        for (next = 0; next < window; ++next) {
          if (filter(b, next, limit)) limit = look(k);
        }
        ceiling = 0;
      }
      release(window);
      sync();
      limit = look(k);
    }
    for (; next < shares; ++next) {
      if (filter(b, 0, limit)) limit = look(k);
      release(1);
    }
    return s.count;
  }

  AK_INLINE void select_best(int& n, int k) {
    if (n <= k) return;
    select.count_new(n);
    Range r = select.range_of(select.template scan<true>([&](int) { return (u32)k; }));
    select.template narrow<true>(r, n, k, 0, FEW);
    select.keep(r, n, k, true);
    n = k;
  }

  // All shares of a row: one search over the sums of their bins, then what reaches its end goes to
  // the first CTA, whose ring is free by then. Returns -1 to the others.
  AK_INLINE int join(int n, int k) {
    if (tid < P::CLUSTER) *of_peer(&s.floors[part], tid) = floor;
    select.sync_cluster();
    u32 most = 0;
    for (int c = 0; c < P::CLUSTER; ++c) most = max(most, s.floors[c]);
    select.rebase(most);
    select.count_new(n);
    const auto found = select.template scan<true>([&](int total) { return (u32)max(min(k, total), 1); });
    Range r = {0, 0, 0, LAST_PLACE, found.total, 0};
    if (found.total > k) {
      r = select.range_of(found);
      select.template narrow<true>(r, n, k, 0, FEW);
    }
    Word* words = (Word*)s.ring;
    u32* places = (u32*)(words + MOST);
    static_assert(P::CLUSTER == 1 || MOST * (sizeof(Word) + 4) <= sizeof(s.ring));
    int* count = of_peer(&s.counts[0], 0);
    if (part == 0 && tid == 0) s.counts[0] = 0;
    select.sync_cluster();
    for (int c = 0; c < n; c += P::THREADS) {
      const int i = c + tid;
      Word word = 0;
      u32 place = 0;
      if (i < n) word = s.words[i], place = s.places[i];
      const bool goes = i < n && select.reaches(r, K::of(word), place);
      const u32 votes = __ballot_sync(ALL_LANES, goes);
      int to = 0;
      if (lane_of() == 0 && votes) to = atomicAdd(count, __popc(votes));
      to = __shfl_sync(ALL_LANES, to, 0) + __popc(votes & lanes_below());
      if (goes) *of_peer(words + to, 0) = word, *of_peer(places + to, 0) = place;
    }
    select.sync_cluster();
    if (part) return -1;
    n = r.above + r.inside;
    for (int i = tid; i < n; i += P::THREADS) s.words[i] = words[i], s.places[i] = places[i];
    sync();
    if (n > k) select.keep(r, n, k, true);
    return min(n, k);
  }

  AK_INLINE void run(int first_row, int step) {
    const int k = a.topk;
    for (int row = first_row; row < a.rows; row += step) {
      const Bounds b = bounds_of<P>(a, row);
      if (trivial(a, b)) {
        if (part == 0) write_all<P>(a, b, row);
        continue;
      }
      int n = stream(b, k);
      if constexpr (P::CLUSTER > 1) {
        n = join(n, k);
        if (n < 0) return;
      } else {
        select_best(n, k);
      }
      if (a.order != UNORDERED && n > 1) sort(s, n, a.order == BY_VALUE);
      write_row(s, a, b, row, n);
    }
  }
};

// The kernel: all threads of all CTAs. A cluster takes one row and no more.
template <class P>
AK_INLINE void select_rows(void* shared, const Arguments& a) {
  Shared<P>& s = *(Shared<P>*)shared;
  const int part = blockIdx.x % P::CLUSTER;
  const int first = blockIdx.x / P::CLUSTER, step = gridDim.x / P::CLUSTER;
  if (threadIdx.x == 0) {
    for (int i = 0; i < P::STAGES; ++i) barrier_init(&s.full[i], 1), barrier_init(&s.empty[i], 1);
    barrier_init(&s.peers, P::CLUSTER);
    barrier_init_done();
  }
  if constexpr (P::CLUSTER > 1) {
    cluster_start();
  } else {
    __syncthreads();
  }
  if (threadIdx.x >= P::THREADS) {
    Producer<P>{s, a}.run(first, step, part);
  } else {
    Consumer<P>(s, a, part).run(first, step);
  }
}

}  // namespace ak
