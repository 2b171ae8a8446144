// The consuming threads: a row's blocks pass a threshold, and what passes is kept. Each warp goes
// through its part of the blocks at its own pace; all meet only where candidates have become many,
// for a look at them that raises the threshold.
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
  // The threshold: of equal keys, places after `late` are below it; `loose` and `strict`: as limits
  // for places up to `late` and behind. From `ceiling` on, everything was appended before.
  u32 floor, late, loose, strict, ceiling;
  int limit;                // candidates at which to look again
  int next;                 // number of the next block of this CTA's share
  u32 left;                 // of that block, hits that may not have been appended yet
  int block, cursor, turn;  // the visit, where a row is read again

  AK_INLINE Stream(Shared<P>& shared, const Arguments& arguments, int part_)
      : s(shared), a(arguments), tid(threadIdx.x), part(part_), search(shared, part_) {}

  AK_INLINE void sync() const { sync_first<P::THREADS>(); }

  AK_INLINE void set_floor(u32 key, u32 place) {
    floor = key, late = place;
    loose = K::limit(key), strict = K::limit(key + 1);
  }
  AK_INLINE void raise(u32 key, u32 place) {
    if (key > floor || (key == floor && place < late)) set_floor(key, place);
  }

  // A rank that `mean` of a larger set's best are not beyond, but for `z` standard deviations.
  AK_INLINE static int rank_of(float mean, float z) { return (int)(mean + z * sqrtf(mean)) + 6; }

  // A guess from a sample of the first blocks: a key that about the `mean` best of `all` elements
  // reach, and some more. 0 where the sample is too small.
  AK_INLINE u32 first_floor(const Bounds& b, int window, float mean, float all) {
    constexpr int STEP = F::BITS - LOG_BINS, SAMPLES = F::BITS / 16;
    constexpr int PER_BLOCK = P::THREADS * V;
    search.clear_bins();
    for (int i = 0; i < window; ++i) {
      const int at = slot + i;
      barrier_wait(&s.full[at < P::STAGES ? at : at - P::STAGES],
                   at < P::STAGES ? parity : parity ^ 1);
    }
    sync();
#pragma unroll
    for (int q = 0; q < SAMPLES; ++q) {
      const int v = (q * P::THREADS + tid) * (window * PER_BLOCK) / (SAMPLES * P::THREADS);
      if (window) {
        const int ahead = slot + v / PER_BLOCK, in = v % PER_BLOCK;
        const int at = ahead < P::STAGES ? ahead : ahead - P::STAGES;
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
    bool none = false;
    const auto found = search.template scan<true>([&](int total) {
      const int rank = rank_of(mean / all * (float)total, P::CLUSTER > 1 ? 4.5f : 3.0f);
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

  // The block of `late` is before another one, or behind it, as a whole.
  AK_INLINE u32 limit_in(int first) const { return (u32)first <= late ? loose : strict; }

  // Of what is not at most that limit, what passes: nothing is above NaN, nor outside the row.
  AK_INLINE u32 hits(const Bounds& b, u32 m, int first) const {
    if ((u32)first > late && floor >= K::NAN_) m = 0;
    if (first < b.first || first + P::BLOCK > b.last) {
#pragma unroll 1
      for (u32 rest = m; rest; rest &= rest - 1) {
        const int j = __ffs(rest) - 1;
        const int place = first + element(j);
        if (place < b.first || place >= b.last) m &= ~(1u << j);
      }
    }
    return m;
  }

  // Appends the hits m of a block. Where there was no room for some, those stay in `left`: false.
  AK_INLINE bool append(u32 m, const Word* block, int first) {
    m &= left;
    left = ~0u;
    bool passed = false;
    if (m) {
      const int mine = __popc(m);
      int to = atomicAdd(&s.count, mine);
      passed = to + mine > limit;
      for (; m && to < P::CAPACITY; ++to) {
        const int q = element(__ffs(m) - 1);
        m &= m - 1;
        search.store(to, block[q], first + q);
      }
    }
    if (!__any_sync(ALL_LANES, passed)) return true;
    if (lane_of() == 0) tell(&s.wanted, 1);
    if (!__any_sync(ALL_LANES, m != 0)) return true;
    left = m;
    return false;
  }

  // The next block, from the ring; false where somebody wants a look first. Warps that wait for the
  // look keep the ring from moving on, so whoever waits for a block has to hear of it.
  AK_INLINE bool filter(const Bounds& b) {
    while (true) {
      const bool done = barrier_try(&s.full[slot], parity);
      if (__any_sync(ALL_LANES, hear(&s.wanted) != 0)) return false;
      if (__all_sync(ALL_LANES, done)) break;
    }
    const int first = s.block[slot] * P::BLOCK;
    const uint4* in = (const uint4*)s.ring[slot];
    uint4 x[V];
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = in[v * P::THREADS + tid];
    const u32 m = hits(b, passing<F, V>(x, limit_in(first)), first);
    if (!append(m, (const Word*)in, first)) return false;
    __syncwarp();
    if (lane_of() == 0) barrier_arrive(&s.empty[slot]);
    if (++slot == P::STAGES) slot = 0, parity ^= 1;
    ++next;
    return true;
  }

  // The next block of the share, in the producer's order.
  AK_INLINE void advance(int blocks) {
    int size = 1;
    while (size < blocks) size *= 2;
    do {
      block = a.draws[size + cursor++];
    } while (block >= blocks || turn++ % P::CLUSTER != part);
  }

  // The next block, from global memory: what is below the ceiling passes as well.
  AK_INLINE bool filter_again(const Bounds& b, int blocks, int shares) {
    if (__any_sync(ALL_LANES, hear(&s.wanted) != 0)) return false;
    const int first = block * P::BLOCK;
    const Word* in = (const Word*)a.input + b.origin + first;
    u32 m = 0;
#pragma unroll 1
    for (int v = 0; v < V; ++v) {
      const int at = (v * P::THREADS + tid) * P::PER, place = first + at;
      u32 w[4] = {0, 0, 0, 0};
#pragma unroll
      for (int e = 0; e < P::PER; ++e) {
        const bool inside = place + e >= b.first && place + e < b.last;
        w[e * 4 / P::PER] |= (inside ? (u32)in[at + e] : 0u) << (e * F::BITS & 31);
      }
      const uint4 x[1] = {make_uint4(w[0], w[1], w[2], w[3])};
      const u32 above = passing<F, 1>(x, limit_in(first)) & ~passing<F, 1>(x, K::limit(ceiling));
      m |= above << 4 * v;
    }
    m = hits(b, m, first);
    if (!append(m, in, first)) return false;
    if (++next < shares) advance(blocks);
    return true;
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

  // By all: a look at the n candidates, and a threshold that `rank` of them reach. `drop`: those
  // below leave. `last`: only `rank` stay, or, where the threshold was a guess, -1 if it is reached
  // by fewer. Returns how many stay.
  AK_INLINE int look(int n, int rank, bool last, bool drop, bool guess) {
    const bool prove = last && guess;
    if (n < rank + (last && !guess)) return prove ? -1 : n;
    search.count_new(n);
    const auto found = search.template scan<false>([&](int) { return (u32)rank; });
    Range r = search.range_of(found);
    if (prove && r.lo < floor) return -1;
    raise(r.lo, LAST_PLACE);
    if (!drop) return n;
    search.template narrow<false>(r, n, rank, last ? 0 : (P::CAPACITY - rank) / 4, last ? FEW : 0);
    search.take(r, n, rank, last);
    if (last) return rank;
    raise(r.lo, LAST_PLACE - r.plo);
    search.rebase(r.lo);
    return r.above + r.inside;
  }

  // The best k of a row, in front of the candidates; of a cluster's share of it, what may be among
  // them. Returns how many.
  AK_INLINE int run(const Bounds& b, int k) {
    const int blocks = (b.last + P::BLOCK - 1) / P::BLOCK;
    const int shares = (blocks - part + P::CLUSTER - 1) / P::CLUSTER;
    const int window = min(shares, P::WINDOW);
    if (tid == 0) s.count = 0, s.wanted = 0;
    set_floor(0, LAST_PLACE);
    next = 0, left = ~0u;
    // A row of which the first blocks are typical has k elements above a floor guessed from them;
    // any other row is read again.
    const float all = (float)b.count(), ahead = min(all, (float)(P::WINDOW * P::BLOCK));
    const int rank = min(rank_of((float)k * ahead / all, 4.5f), k);
    if (b.count() > 2 * k) {
      const bool alone = P::CLUSTER == 1;  // a later look makes it sharper
      set_floor(first_floor(b, window, alone ? (float)rank : (float)k, alone ? ahead : all),
                LAST_PLACE);
    }
    search.rebase(floor);
    bool guess = floor != 0, again = false;
    limit = guess ? P::CAPACITY : k - 1;
    int stop = guess && P::CLUSTER == 1 ? window : shares;
#pragma unroll 1
    while (true) {
      if (again) {
        while (next < stop && filter_again(b, blocks, shares)) {
        }
      } else {
        while (next < stop && filter(b)) {
        }
      }
      const bool over = sync_first_and<P::THREADS>(next == stop);
      const int n = min(s.count, P::CAPACITY);
      const bool sharpen = over && stop < shares, end = over && !sharpen;
      if (sharpen) stop = shares;
      if (P::CLUSTER == 1 || !end) sync();
      int stay = n;
      if (P::CLUSTER > 1 && end) {
        if (guess && count_all() < k) stay = -1;
      } else {
        const bool drop = end || (!sharpen && n > P::CAPACITY - LEAST);
        stay = look(n, sharpen ? rank : k, end, drop, guess);
      }
      if (end && stay >= 0) return stay;
      if (stay < 0) {
        ceiling = floor;
        search.take({floor, K::ONES, 0, LAST_PLACE, 0, 0}, n, k, false);
        stay = s.kept;
        set_floor(0, LAST_PLACE);
        search.rebase(0);
        guess = false, again = true;
        next = turn = cursor = 0;
        if (next < shares) advance(blocks);
        limit = k - 1;
      } else if (sharpen) {
        limit = P::CAPACITY;
      } else {
        limit = n < k ? k - 1 : min(stay + max(k / 4, LEAST), P::CAPACITY);
      }
      if (tid == 0) {
        s.count = stay;
        tell(&s.wanted, 0);
      }
      sync();
    }
  }
};

}  // namespace ak
