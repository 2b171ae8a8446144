// A CTA's piece of a row into shared memory, and what of it is looked at.
namespace ak {

template <class P>
struct Loader {
  using F = typename P::F;
  using K = Keys<F>;
  using Word = typename P::Word;
  Resident<P>& s;
  const Arguments& a;
  const Bounds& b;
  const Held h;

  AK_INLINE const Word* place(int at) const { return (const Word*)a.input + b.origin + at; }
  AK_INLINE bool whole(int at) const { return at >= b.first && at + P::PER <= b.last; }

  AK_INLINE void load_one(int j) {
    const int at = (h.first + j) * P::PER;
    uint4* to = &s.row[slot_of(j)];
    if (whole(at)) {
      copy16(to, place(at));
      return;
    }
    // Nothing outside the row is read; -inf stands there.
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = 0;
#pragma unroll
      for (int e = 0; e < P::PER / 4; ++e) {
        const int here = at + i * (P::PER / 4) + e;
        const bool inside = here >= b.first && here < b.last;
        w[i] |= (inside ? (u32)*place(here) : F::INF | K::SIGN) << (16 * e);
      }
    }
    *to = make_uint4(w[0], w[1], w[2], w[3]);
  }

  // Vector of this thread in the first step: each warp has a block of 32 of its part of a row.
  AK_INLINE int sampled() const { return (threadIdx.x / 32 * h.each) * 32 + lane_of(); }

  // One CTA: warps have blocks of 32 vectors next to each other, so that the first step is a sample
  // of the whole row. A cluster has samples of its own, and neighbouring warps read neighbours.
  AK_INLINE void load() {
#pragma unroll 4
    for (int step = 0; step < h.each; ++step) {
      const int j = P::CLUSTER > 1 ? step * P::THREADS + (int)threadIdx.x : sampled() + step * 32;
      if (j < h.count) load_one(j);
      if (step == 0) copy_commit();
    }
    copy_commit();
  }

  // Part of a short row is sample enough.
  AK_INLINE void count_sample(u32* bins) {
    copy_wait<1>();
    if (sampled() < h.count) {
      count_vector(s.row[slot_of(sampled())], bins, h.each < 2 ? 1 : h.each < 8 ? 2 : 4);
    }
  }

  // A vector a thread, from all over the row: all CTAs of a cluster read the same ones.
  AK_INLINE bool far_sample(uint4& x) const {
    const int vectors = b.last / P::PER;
    const int at = (int)((long long)threadIdx.x * vectors / P::THREADS) * P::PER;
    if (!whole(at)) return false;
    x = load16(place(at));
    return true;
  }

  AK_INLINE void count_vector(const uint4& x, u32* bins, int words) {
    const u32 w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int e = 0; e < P::PER / 4; ++e) {
        const u32 bits = P::PER == 8 ? w[i] >> (16 * e) & 0xffffu : w[i];
        if (i < words) atomicAdd(&bins[K::of(bits) >> P::COARSE], 1u);
      }
    }
  }

  // Hits among this thread's elements 32p to 32p+31, in the bits of `passing`: m not at most
  // `limit` and, where there are two limits, n not at most `other`.
  template <bool TWO>
  AK_INLINE void hits(int p, u32 limit, u32 other, u32& m, u32& n) const {
    const int at = p * P::PACK, j = h.mine() + at;
    m = n = 0;
    if (at + P::PACK <= h.each && j + P::PACK <= h.count) {
      uint4 x[P::PACK];
#pragma unroll
      for (int v = 0; v < P::PACK; ++v) x[v] = s.row[slot_of(j + v)];
      m = passing<F, P::PACK>(x, limit);
      if (TWO) n = passing<F, P::PACK>(x, other);
      return;
    }
#pragma unroll
    for (int v = 0; v < P::PACK; ++v) {
      if (at + v >= h.each || j + v >= h.count) break;
      const uint4 x[1] = {s.row[slot_of(j + v)]};
      m |= passing<F, 1>(x, limit) << (4 * v);
      if (TWO) n |= passing<F, 1>(x, other) << (4 * v);
    }
  }

  // Element e of this thread's.
  AK_INLINE u32 element(int e) const {
    return ((const Word*)&s.row[slot_of(h.mine() + e / P::PER)])[e % P::PER];
  }

  AK_INLINE void count_one(u32 bits, u32* bins, u32 lo, int step) const {
    const u32 bin = (K::of(bits) - lo) >> step;
    atomicAdd(&bins[P::WINDOWED ? bin : min(bin, (u32)P::BINS - 1)], 1u);
  }

  // One vector, and its hits: no loop, so nothing waits for anything.
  AK_INLINE void count_hits(const uint4& x, u32 m, u32* bins, u32 lo, int step) const {
    const u32 w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int e = 0; e < P::PER / 4; ++e) {
        const u32 bits = P::PER == 8 ? w[i] >> (16 * e) & 0xffffu : w[i];
        if (m >> (i + 16 * e) & 1) count_one(bits, bins, lo, step);
      }
    }
  }

  // Bits of `passing`; in a cluster, which has its SMs for itself, two by two, so that two loads
  // are under way.
  AK_INLINE void count_word(int p, u32 m, u32* bins, u32 lo, int step) const {
    constexpr bool PAIRS = P::CLUSTER > 1;
    u32 m0 = PAIRS ? m & 0xffffu : m, m1 = PAIRS ? m >> 16 : 0;
    while (m0 | m1) {
      const int j0 = __ffs(m0) - 1, j1 = __ffs(m1) - 1;
      u32 x0 = 0, x1 = 0;
      if (m0) x0 = element(p * 32 + (F::BITS == 16 ? (j0 & 15) * 2 + (j0 >> 4) : j0));
      if (m1) x1 = element(p * 32 + (F::BITS == 16 ? j1 * 2 + 1 : j1 + 16));
      if (m0) count_one(x0, bins, lo, step);
      if (m1) count_one(x1, bins, lo, step);
      m0 &= m0 - 1, m1 &= m1 - 1;
    }
  }

  // Counts keys lo to hi into bins of 2^step keys; the last bin takes what is beyond it, and, if
  // `beyond`, what is above hi.
  AK_INLINE void count(u32* bins, u32 lo, u32 hi, int step, bool beyond) {
    const bool capped = hi < K::NAN_;
    const u32 low = K::limit(lo), high = K::limit(capped ? hi + 1 : hi);
    u32 above = 0;
    if (lo == 0 && !capped) {
      for (int j = threadIdx.x; j < h.count; j += P::THREADS) {
        count_vector(s.row[slot_of(j)], bins, 4);  // the highest digit
      }
    } else if (h.each == 1) {
      if (h.mine() < h.count) {
        const uint4 x[1] = {s.row[slot_of(h.mine())]};
        const u32 over = capped ? passing<F, 1>(x, high) : 0;
        count_hits(x[0], passing<F, 1>(x, low) & ~over, bins, lo, step);
        above = (u32)__popc(over);
      }
    } else {
      for (int p = 0; p * P::PACK < h.each; ++p) {
        u32 m, over = 0;
        if (capped) {
          hits<true>(p, low, high, m, over);
        } else {
          hits<false>(p, low, 0, m, over);
        }
        above += (u32)__popc(over);
        count_word(p, m & ~over, bins, lo, step);
      }
    }
    if (beyond) {
      above = warp_sum(above);
      if (lane_of() == 0 && above) atomicAdd(&bins[P::BINS - 1], above);
    }
    // What stands before the row's first element is no candidate, and was counted as -inf. What
    // stands behind its last one loses to all -inf there are, by its place.
    constexpr u32 LOWEST = K::ONES ^ (F::INF | K::SIGN);
    if (threadIdx.x == 0 && h.first == 0 && h.count && b.first && lo <= LOWEST && hi >= LOWEST) {
      atomicAdd(&bins[min((LOWEST - lo) >> step, (u32)P::BINS - 1)], 0u - (u32)b.first);
    }
  }
};

}  // namespace ak
