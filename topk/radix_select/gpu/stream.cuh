// The consuming threads: a row's blocks pass a threshold that rises, and what passes is kept.
namespace ak {

template <class P>
struct Stream {
  using F = typename P::F;
  using K = Keys<F>;
  using Word = typename P::Word;
  static constexpr int V = P::VECTORS;
  // The next look at the candidates comes after a quarter of k more, but not after fewer.
  static constexpr int LEAST = 256;

  Shared<P>& s;
  const Arguments& a;
  const int tid, part;
  Search<P> search;
  int slot = 0;
  u32 parity = 0;
  // The threshold: of equal keys, places after `late` are below it. From `ceiling` on, everything
  // was appended before.
  u32 floor, late, ceiling;
  int limit;  // candidates at which to look again

  AK_INLINE Stream(Shared<P>& shared, const Arguments& arguments, int part_)
      : s(shared), a(arguments), tid(threadIdx.x), part(part_), search(shared, part_) {}

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
    constexpr int STEP = F::BITS - LOG_BINS, SAMPLES = F::BITS / 16;
    constexpr int PER_BLOCK = P::THREADS * V;
    search.clear_bins();
    for (int i = 0; i < window; ++i) wait_full(i);
    sync();
#pragma unroll
    for (int q = 0; q < SAMPLES; ++q) {
      const int v = (q * P::THREADS + tid) * (window * PER_BLOCK) / (SAMPLES * P::THREADS);
      if (window) {
        const int at = slot_of(v / PER_BLOCK), in = v % PER_BLOCK;
        const uint4 x = ((const uint4*)s.ring[at])[in];
        const u32 w[4] = {x.x, x.y, x.z, x.w};
        const int place = s.block[at] * P::BLOCK + in * P::PER;
#pragma unroll
        for (int e = 0; e < P::PER; ++e) {
          const u32 bits = F::BITS == 32 ? w[e] : w[e / 2] >> (e % 2 * 16) & 0xffff;
          if (place + e >= b.first && place + e < b.last)
            atomicAdd(&s.bins[K::of(bits) >> STEP], 1u);
        }
      }
    }
    const float all = (float)min(b.count(), P::CLUSTER * P::WINDOW * P::BLOCK);
    bool none = false;
    const auto found = search.template scan<true>([&](int total) {
      const float mean = (float)k / all * (float)total;
      const int rank = (int)(mean + 3.0f * sqrtf(mean)) + 2;
      none = rank >= total;
      return (u32)(none ? 1 : rank);
    });
    return none ? 0 : (u32)found.bin << STEP;
  }

  // Where in a block bit j of a thread's hits lies.
  AK_INLINE int element(int j) const {
    const int word = j & 15;
    return ((word >> 2) * P::THREADS + tid) * P::PER + (word & 3) * (P::PER / 4) + (j >> 4);
  }

  // What passes of a thread's vectors of a block.
  AK_INLINE u32 hits(const Bounds& b, const uint4 (&x)[V], int first) const {
    // The block of `late` is before this one, or behind it, as a whole.
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
    return m;
  }

  // Appends the hits m of the block in the ring's buffer `at`; true if that passed the limit. Hits
  // for which there is no room stay in m.
  AK_INLINE bool append(u32& m, int at, int first) {
    if (!__any_sync(ALL_LANES, m != 0)) return false;
    // One lane takes room for all; a sum over the lanes below is a ballot for each bit of a count.
    const int mine = __popc(m);
    int below = 0, all = 0;
#pragma unroll
    for (int i = 0; 1 << i <= V * P::PER; ++i) {
      const u32 votes = __ballot_sync(ALL_LANES, mine >> i & 1);
      below += __popc(votes & lanes_below()) << i;
      all += __popc(votes) << i;
    }
    int to = 0;
    if (lane_of() == 0) to = atomicAdd(&s.count, all);
    to = __shfl_sync(ALL_LANES, to, 0);
    const bool passed = to + all > limit;
    to += below;
    for (; m && to < P::CAPACITY; ++to) {
      const int q = element(__ffs(m) - 1);
      m &= m - 1;
      s.words[to] = ((const Word*)s.ring[at])[q];
      s.places[to] = first + q;
    }
    return passed;
  }

  // All that passes of the block that is next but `ahead`.
  AK_INLINE void filter(const Bounds& b, int ahead, int k) {
    const int at = slot_of(ahead);
    wait_full(ahead);
    const int first = s.block[at] * P::BLOCK;
    const uint4* in = (const uint4*)s.ring[at];
    uint4 x[V];
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = in[v * P::THREADS + tid];
    u32 m = hits(b, x, first);
    while (sync_first_or<P::THREADS>(append(m, at, first))) {
      if (!look(k)) break;
      m &= hits(b, x, first);
    }
  }

  AK_INLINE void raise(u32 key, u32 place) {
    if (key > floor || (key == floor && place < late)) floor = key, late = place;
  }

  // Called by all where the limit was passed: a higher threshold, and room for more. True if there
  // were hits for which there was none.
  AK_INLINE bool look(int k) {
    const int came = s.count, n = min(came, P::CAPACITY);
    sync();
    int left = n;
    if (n >= k) {
      search.count_new(n);
      const auto found = search.template scan<false>([&](int) { return (u32)k; });
      raise(search.floor_of(found.bin), LAST_PLACE);
      if (n > P::CAPACITY - LEAST) {
        Range r = search.range_of(found);
        search.template narrow<false>(r, n, k, (P::CAPACITY - k) / 4, 0);
        search.template take<true>(r, n, k, false, [&](int to, Word word, u32 place) {
          s.words[to] = word;
          s.places[to] = place;
        });
        raise(r.lo, LAST_PLACE - r.plo);
        search.rebase(r.lo);
        left = r.above + r.inside;
      }
    }
    if (left != came) {
      if (tid == 0) s.count = left;
      sync();
    }
    limit = n < k ? k - 1 : min(left + max(k / 4, LEAST), P::CAPACITY);
    return came > P::CAPACITY;
  }

  AK_INLINE int count_all() {
    if constexpr (P::CLUSTER > 1) {
      if (tid < P::CLUSTER) *of_peer(&s.counts[part], tid) = min(s.count, P::CAPACITY);
      search.sync_cluster();
      int all = 0;
      for (int c = 0; c < P::CLUSTER; ++c) all += s.counts[c];
      return all;
    } else {
      return s.count;
    }
  }

  // The candidates of this CTA's share of a row; returns how many.
  AK_INLINE int run(const Bounds& b, int k) {
    const int blocks = (b.last + P::BLOCK - 1) / P::BLOCK;
    const int shares = (blocks - part + P::CLUSTER - 1) / P::CLUSTER;
    const int window = min(shares, P::WINDOW);
    int next = 0;
    if (tid == 0) s.count = 0;
    floor = 0, late = LAST_PLACE, ceiling = 0;
    limit = k - 1;
    if (b.count() > 2 * k) floor = first_floor(b, window, k);
    search.rebase(floor);
    if (floor) {
      limit = P::CAPACITY;
      for (; next < window; ++next) filter(b, next, k);
      if (count_all() < k) {
        // Too few of the window reached the first threshold: what is below it passes as well.
        sync();
        ceiling = floor, floor = 0;
        search.rebase(0);
        for (next = 0; next < window; ++next) filter(b, next, k);
        ceiling = 0;
      }
      release(window);
      sync();
      look(k);
    }
    for (; next < shares; ++next) {
      filter(b, 0, k);
      release(1);
    }
    return s.count;
  }
};

}  // namespace ak
