// A CTA's piece of a row into shared memory, and what of it is looked at.
namespace ak {

template <class P>
struct Loader {
  using F = typename P::F;
  using Word = typename P::Word;
  Resident<P>& s;
  const Arguments& a;
  const Bounds& b;
  const Held h;

  // Vector of this thread in a step; each warp has neighbouring blocks of 32, so that the first
  // step is a sample of the whole piece.
  AK_INLINE int vector(int step, int steps) const {
    return (threadIdx.x / 32 * steps + step) * 32 + lane_of();
  }

  AK_INLINE void load_one(int j) {
    const int place = (h.first * P::VECTORS + j) * P::PER;
    const Word* in = (const Word*)a.input + b.origin + place;
    uint4* to = &s.row[slot_of<P>(j / P::VECTORS, j % P::VECTORS)];
    if (place >= b.first && place + P::PER <= b.last) {
      copy16(to, in);
      return;
    }
    // Nothing outside the row is read; -inf stands there.
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = 0;
#pragma unroll
      for (int e = 0; e < P::PER / 4; ++e) {
        const int at = i * (P::PER / 4) + e;
        const bool inside = place + at >= b.first && place + at < b.last;
        w[i] |= (inside ? (u32)in[at] : F::INF | Keys<F>::SIGN) << (16 * e);
      }
    }
    *to = make_uint4(w[0], w[1], w[2], w[3]);
  }

  // Two groups of copies: the first step, and the others.
  AK_INLINE void load() {
    const int vectors = h.count * P::VECTORS, steps = (vectors + P::THREADS - 1) / P::THREADS;
    for (int step = 0; step < steps; ++step) {
      const int j = vector(step, steps);
      if (j < vectors) load_one(j);
      if (step == 0) copy_commit();
    }
    copy_commit();
  }

  // Counts this thread's vector of the first step into the bins of the highest digit.
  AK_INLINE void sample(u32* bins) {
    const int vectors = h.count * P::VECTORS, steps = (vectors + P::THREADS - 1) / P::THREADS;
    const int j = vector(0, steps);
    copy_wait<1>();
    if (j >= vectors) return;
    const uint4 x = s.row[slot_of<P>(j / P::VECTORS, j % P::VECTORS)];
    // A part of a short row is sample enough.
    count_vector(x, bins, steps < 2 ? 1 : steps < 8 ? 2 : 4);
  }

  AK_INLINE void count_vector(const uint4& x, u32* bins, int words) {
    const u32 w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int e = 0; e < P::PER / 4; ++e) {
        const u32 bits = P::PER == 8 ? w[i] >> (16 * e) & 0xffffu : w[i];
        if (i < words) atomicAdd(&bins[Keys<F>::of(bits) >> (F::BITS - P::LOG_BINS)], 1u);
      }
    }
  }

  AK_INLINE void chunk(int c, uint4 (&x)[P::VECTORS]) const {
#pragma unroll
    for (int v = 0; v < P::VECTORS; ++v) x[v] = s.row[slot_of<P>(c, v)];
  }
  // Element of a chunk, by its number.
  AK_INLINE u32 element(int c, int e) const {
    return ((const Word*)&s.row[slot_of<P>(c, e / P::PER)])[e % P::PER];
  }

  // Counts keys lo to hi into bins of 2^step keys; the last bin takes what is beyond it.
  AK_INLINE void count(u32* bins, u32 lo, u32 hi, int step) {
    using K = Keys<F>;
    const bool all = lo == 0 && hi >= K::NAN_, capped = hi < K::NAN_;
    const u32 low = K::limit(lo), high = K::limit(capped ? hi + 1 : hi);
    for (int c = threadIdx.x; c < h.count; c += P::THREADS) {
      if (all) {
        // The digit is the highest one.
#pragma unroll 2
        for (int v = 0; v < P::VECTORS; ++v) count_vector(s.row[slot_of<P>(c, v)], bins, 4);
        continue;
      }
      uint4 x[P::VECTORS];
      chunk(c, x);
      u32 m = passing<F, P::VECTORS>(x, low);
      if (capped) m &= ~passing<F, P::VECTORS>(x, high);
      for (; m; m &= m - 1) {
        const int j = __ffs(m) - 1;
        const int e = F::BITS == 16 ? (j & 15) * 2 + (j >> 4) : j;
        const u32 bin = (K::of(element(c, e)) - lo) >> step;
        atomicAdd(&bins[min(bin, (u32)P::BINS - 1)], 1u);
      }
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
