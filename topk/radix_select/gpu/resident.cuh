// Top-k of rows that shared memory holds: digits of the k-th best, then what reaches it, in order.
namespace ak {

template <class P>
struct Selection {
  using F = typename P::F;
  using K = Keys<F>;
  using Word = typename P::Word;
  Resident<P>& s;
  const Arguments& a;
  const Bounds b;
  const int row, part;
  Held h;
  Finder<P> find;
  // Keys lo to hi are undecided: `above` elements are above them, `inside` reach them.
  u32 lo = 0, hi = K::NAN_;
  int above = 0, inside = 0, above_before = 0, inside_before = 0;

  AK_INLINE void sync() const { sync_first<P::THREADS>(); }

  // A key that k elements reach, or so a sample says.
  AK_INLINE u32 sampled_floor(int k) {
    const float share = (float)k / (float)b.count();
    bool none = false;
    const Pivot f = find.local([&](int total) {
      const float mean = share * (float)total;
      const int rank = (int)(mean + 3.0f * sqrtf(mean)) + 2;
      none = rank >= total;
      return (u32)(none ? 1 : rank);
    });
    return none ? 0 : (u32)f.bin << P::COARSE;
  }

  AK_INLINE void narrow(Loader<P>& loader, int k, u32 floor) {
    int step = floor ? P::FINE : P::COARSE;
    lo = floor;
    bool beyond = P::WINDOWED && floor && hi - lo >= P::WINDOW;
    for (int turn = 0;; ++turn) {
      const u32 top = beyond ? lo + (P::WINDOW - 1) : hi;
      loader.count(s.bins(P::CLUSTER > 1 ? turn & 1 : 0), lo, top, step, beyond);
      const u32 aim = (u32)(k - above);
      Pivot f;
      if constexpr (P::CLUSTER > 1) {
        f = find.together(turn, aim);
      } else {
        f = find.local([&](int) { return aim; });
      }
      if (f.total < (int)aim) {  // the sample promised too much
        lo = 0, step = P::COARSE, beyond = false;
        continue;
      }
      above += f.above, above_before += f.above_before;
      inside = f.inside, inside_before = f.inside_before;
      if (beyond && f.bin == P::BINS - 1) {
        lo = top + 1;
      } else {
        lo += (u32)f.bin << step;
        if (f.bin < P::BINS - 1) hi = lo + min(top - lo, (1u << step) - 1);
      }
      beyond = false;
      if (lo == hi || above + inside == k) return;
      step = max(32 - __clz(hi - lo) - P::LOG_BINS, 0);
    }
  }

  // What of this CTA's piece is selected, by place, into the list of the best; returns how many,
  // and in `base` how many the CTAs before this one have.
  AK_INLINE int collect(const Loader<P>& loader, int need, int& base) {
    const bool cut = need < inside;  // of the elements at `lo`, only the first `need` are taken
    const u32 low = K::limit(lo), higher = K::limit(lo + 1);
    u32 sure[P::PACKS], tied[P::PACKS], mine = 0;
#pragma unroll
    for (int p = 0; p < P::PACKS; ++p) {
      sure[p] = tied[p] = 0;
      if (p * P::PACK >= h.each) continue;
      u32 reach, more;
      if (cut) {
        loader.template hits<true>(p, low, higher, reach, more);
      } else {
        loader.template hits<false>(p, low, 0, reach, more);
      }
      const int place = (h.first + h.mine()) * P::PER + p * 32;
      u32 valid = ALL_LANES;
      if (place < b.first) valid &= ALL_LANES << (b.first - place);
      if (place + 32 > b.last) valid &= place < b.last ? ALL_LANES >> (place + 32 - b.last) : 0;
      reach = in_order<F>(reach) & valid;
      sure[p] = !cut ? reach : lo < K::NAN_ ? in_order<F>(more) & valid : 0;
      tied[p] = reach & ~sure[p];
      mine += ((u32)__popc(sure[p]) << 18) + (u32)__popc(tied[p]);
    }
    u32 total;
    const u32 before = find.before_me(mine, total);
    int ties = inside_before + (int)(before & 0x3ffff);
    const int first_tie = min(inside_before, need);
    base = above_before + (cut ? first_tie : inside_before);
    int to = (int)(before >> 18) + (cut ? min(ties, need) - first_tie : 0);
    const bool keep_words = a.order == BY_VALUE || a.flags & HAS_VALUES;
#pragma unroll
    for (int p = 0; p < P::PACKS; ++p) {
      const int n = __popc(tied[p]), place = (h.first + h.mine()) * P::PER + p * 32;
      for (int i = ties + n; i > need && tied[p]; --i) tied[p] &= ~(0x80000000u >> __clz(tied[p]));
      ties += n;
      for (u32 m = sure[p] | tied[p]; m; m &= m - 1) {
        const int e = __ffs(m) - 1;
        s.places()[to] = (u32)(place + e);
        if (keep_words) s.words()[to] = (Word)loader.element(p * 32 + e);
        ++to;
      }
    }
    sync();
    const int all_ties = inside_before + (int)(total & 0x3ffff);
    return (int)(total >> 18) + (cut ? min(all_ties, need) - first_tie : 0);
  }

  // Sorted outputs of a cluster: all CTAs get all of the best, and each counts, for its share of
  // them, those before it.
  AK_INLINE void rank(int n, int base, int count) {
    for (int i = threadIdx.x; i < count * P::CLUSTER; i += P::THREADS) {
      const int at = i / P::CLUSTER, to = i % P::CLUSTER;
      const u32 word = s.words()[at], late = ~s.places()[at];
      *of_peer(&s.ranked[base + at], to) = (u64)K::of(word) << 32 | late;
      *of_peer(&s.ranked_words[base + at], to) = word;
    }
    cluster_arrive();
    cluster_wait();
    for (int i = part + P::CLUSTER * (threadIdx.x / 32); i < n; i += P::CLUSTER * P::WARPS) {
      const u64 mine = s.ranked[i];
      u32 ahead = 0;
      for (int j = lane_of(); j < n; j += 32) ahead += s.ranked[j] > mine;
      ahead = warp_sum(ahead);
      if (lane_of() == 0) write_one<F>(a, b, row, (int)ahead, s.ranked_words[i], ~(u32)mine);
    }
    if (part == 0) write_fill<F, P::THREADS>(a, row, n);
  }

  AK_INLINE void run(int k) {
    const int n = min(k, b.count());
    h = held_by<P>(b, part);
    Loader<P> loader{s, a, b, h};
    // A sample pays where it leaves much out.
    const bool all = b.count() <= k, sampled = b.count() >= 4 * k;
    uint4 x;
    bool found = false;
    if (P::CLUSTER > 1 && sampled) found = loader.far_sample(x);
    loader.load();
    launch_next();
    u32 floor = 0;
    sync();  // the bins are clear
    if (sampled) {
      if (P::CLUSTER == 1) loader.count_sample(s.bins(0));
      if (found) loader.count_vector(x, s.bins(0), k >= b.count() / 64 ? 2 : 4);
      floor = sampled_floor(k);
    }
    if constexpr (P::CLUSTER > 1) cluster_wait();
    copy_wait<0>();
    sync();
    if (all) {
      // Only sorted: everything is taken.
      inside_before = min(max(min(h.first * P::PER, b.last) - b.first, 0), n);
      inside = n;
    } else {
      narrow(loader, k, floor);
    }
    if constexpr (P::CLUSTER > 1) {
      if (a.order != BY_VALUE) cluster_arrive();  // peers' bins were read
    }
    int base;
    const int count = collect(loader, n - above, base);
    if constexpr (P::CLUSTER > 1) {
      if (a.order == BY_VALUE) {
        rank(n, base, count);
        return;
      }
    }
    if (P::CLUSTER == 1 && a.order == BY_VALUE) {
      sort<F, P::THREADS>(s.words(), s.places(), n, true);
      write_row<F, P::THREADS>(s.words(), s.places(), a, b, row, n);
    } else {
      for (int i = threadIdx.x; i < count; i += P::THREADS) {
        write_one<F>(a, b, row, base + i, s.words()[i], s.places()[i]);
      }
    }
    if constexpr (P::CLUSTER > 1) cluster_wait();
  }
};

// The kernel: a CTA or a cluster a row.
template <class P>
AK_INLINE void select_resident(void* shared, const Arguments& a) {
  Resident<P>& s = *(Resident<P>*)shared;
  const int row = blockIdx.x / P::CLUSTER, part = blockIdx.x % P::CLUSTER;
  Finder<P> find{s, part};
  if constexpr (P::CLUSTER > 1) cluster_arrive();
#pragma unroll
  for (int set = 0; set < P::SETS; ++set) find.clear(set);
  const Bounds b = bounds_of<typename P::F>(a, row);
  if (trivial(a, b)) {
    launch_next();
    if (part == 0) write_trivial<typename P::F, P::THREADS>(a, b, row);
    if constexpr (P::CLUSTER > 1) cluster_wait();
    return;
  }
  Selection<P>{s, a, b, row, part, {}, find}.run(a.topk);
}

}  // namespace ak
