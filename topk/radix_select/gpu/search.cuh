// How a CTA (or a cluster of them) finds the k-th best of its candidates, and takes what reaches
// it.
namespace ak {

// Undecided candidates: keys lo to hi, and where that is one key, places by lateness plo to phi.
// Above them are `above` candidates, among them `inside`; above < k <= above + inside.
struct Range {
  u32 lo, hi, plo, phi;
  int above, inside;
};

template <class P>
struct Search {
  using F = typename P::F;
  using K = Keys<F>;
  using Word = typename P::Word;
  Shared<P>& s;
  const int tid, part;
  u32 base = 0;                   // bins count keys from here,
  int fine = F::BITS - LOG_BINS;  // in steps of 2^fine; the last bin takes what is beyond
  int counted = 0;                // candidates that are in the bins
  u32 peer_parity = 0;

  AK_INLINE Search(Shared<P>& shared, int part_) : s(shared), tid(threadIdx.x), part(part_) {}
  AK_INLINE void sync() const { sync_first<P::THREADS>(); }

  AK_INLINE void clear_bins() {
#pragma unroll
    for (int i = 0; i < BINS / 4; i += P::THREADS) {
      if (i + tid < BINS / 4) ((uint4*)s.bins)[i + tid] = make_uint4(0, 0, 0, 0);
    }
  }

  // Every consumer of every CTA of the cluster.
  AK_INLINE void sync_cluster() {
    sync();
    if (tid < P::CLUSTER) peer_arrive(&s.peers, tid);
    peer_wait(&s.peers, peer_parity);
    peer_parity ^= 1;
  }

  // The bins to scan: those of the CTA, or, where all look together, their sums over the cluster.
  template <bool TOGETHER>
  AK_INLINE const u32* bins_ready() {
    if constexpr (P::CLUSTER == 1 || !TOGETHER) {
      sync();
      return s.bins;
    } else {
      sync_cluster();
      constexpr int MINE = BINS / P::CLUSTER;
      for (int i = part * MINE + tid; i < (part + 1) * MINE; i += P::THREADS) {
        u32 n = 0;
#pragma unroll
        for (int c = 0; c < P::CLUSTER; ++c) n += *of_peer(&s.bins[i], c);
#pragma unroll
        for (int c = 0; c < P::CLUSTER; ++c) *of_peer(&s.total[i], c) = n;
      }
      sync_cluster();
      return s.total;
    }
  }

  struct Found {
    int bin, above, inside, total;
  };

  // The highest bin that, with all above it, holds `aim(total)` or more.
  template <bool TOGETHER, class Aim>
  AK_INLINE Found scan(Aim aim) {
    const u32* bins = bins_ready<TOGETHER>();
    constexpr int MINE = BINS / P::THREADS;
    const int first = BINS - (tid + 1) * MINE;
    u32 n[MINE], sum = 0;
#pragma unroll
    for (int i = 0; i < MINE; i += 4) {
      const uint4 x = *(const uint4*)&bins[first + i];
      n[i] = x.x, n[i + 1] = x.y, n[i + 2] = x.z, n[i + 3] = x.w;
      sum += x.x + x.y + x.z + x.w;
    }
    u32 upto = sum;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const u32 other = __shfl_up_sync(ALL_LANES, upto, d);
      if (lane_of() >= d) upto += other;
    }
    if (lane_of() == 31) s.sums[tid / 32] = upto;
    sync();
    u32 before = 0, total = 0;
#pragma unroll
    for (int w = 0; w < P::THREADS / 32; ++w) {
      const u32 t = s.sums[w];
      before += w < tid / 32 ? t : 0;
      total += t;
    }
    const u32 wanted = aim((int)total);
    upto += before;
    if (upto - sum < wanted && wanted <= upto) {
      u32 above = upto - sum;
#pragma unroll
      for (int i = MINE - 1; i >= 0; --i) {
        if (above < wanted && wanted <= above + n[i]) {
          s.found[0] = first + i;
          s.found[1] = above;
          s.found[2] = n[i];
        }
        above += n[i];
      }
    }
    sync();
    return {(int)s.found[0], (int)s.found[1], (int)s.found[2], (int)total};
  }

  AK_INLINE void rebase(u32 key) {
    base = key;
    fine = key ? F::FINE : F::BITS - LOG_BINS;
    counted = 0;
    clear_bins();
    sync();
  }

  // Candidates that came since the last time go into the bins. Those below the base are left out.
  AK_INLINE void count_new(int n) {
#pragma unroll 2
    for (int i = counted + tid; i < n; i += P::THREADS) {
      const u32 key = K::of(s.words[i]);
      if (key >= base) atomicAdd(&s.bins[min((key - base) >> fine, (u32)(BINS - 1))], 1u);
    }
    counted = n;
  }

  AK_INLINE u32 floor_of(int bin) const { return base + ((u32)bin << fine); }

  AK_INLINE Range range_of(const Found& f) const {
    const u32 lo = floor_of(f.bin), rest = K::ONES - lo;  // a bin may reach beyond the last key
    const u32 hi = f.bin == BINS - 1 ? K::ONES : lo + min((1u << fine) - 1, rest);
    return {lo, hi, 0, LAST_PLACE, f.above, f.inside};
  }

  // Fewer undecided candidates, until the best k and at most `spare` more are known, or at most
  // `few` are undecided. Bins of a narrower range each time; equal keys by their places.
  template <bool TOGETHER>
  AK_INLINE void narrow(Range& r, int n, int k, int spare, int few) {
#pragma unroll 1
    while (r.above + r.inside - k > spare && r.inside > few) {
      const bool by_place = r.lo == r.hi;
      const u32 start = by_place ? r.plo : r.lo, width = by_place ? r.phi - r.plo : r.hi - r.lo;
      const int step = max(32 - __clz(width) - LOG_BINS, 0);
      clear_bins();
      sync();
#pragma unroll 1
      for (int i = tid; i < n; i += P::THREADS) {
        const u32 key = K::of(s.words[i]);
        const u32 x = (by_place ? LAST_PLACE - s.places[i] : key) - start;
        if ((by_place ? key == r.lo : true) && x <= width) atomicAdd(&s.bins[x >> step], 1u);
      }
      const int above = r.above;
      const Found f = scan<TOGETHER>([&](int) { return (u32)(k - above); });
      r.above += f.above;
      r.inside = f.inside;
      const u32 in = (u32)f.bin << step;
      const u32 lo = start + in, hi = start + in + min(width - in, (1u << step) - 1);
      if (by_place) {
        r.plo = lo, r.phi = hi;
      } else {
        r.lo = lo, r.hi = hi;
      }
    }
  }

  AK_INLINE static bool reaches(const Range& r, u32 key, u32 place) {
    return key > r.lo || (key == r.lo && LAST_PLACE - place >= r.plo);
  }

  // What reaches the range moves to the front of the n candidates. Where `exact`, of those inside
  // the range only the best k - above.
  AK_INLINE void take(const Range& r, int n, int k, bool exact) {
    exact = exact && r.above + r.inside > k;
    u32* keys = s.bins;  // of undecided candidates; the bins are done with
    u32* places = s.bins + FEW;
    u32* words = s.bins + 2 * FEW;
    if (tid == 0) s.kept = 0, s.ties = 0;
    sync();
    constexpr int Q = 4;
#pragma unroll 1
    for (int c = 0; c < n; c += Q * P::THREADS) {
      Word word[Q];
      u32 place[Q], votes[Q];
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        const int i = c + q * P::THREADS + tid;
        bool stays = false;
        if (i < n) {
          word[q] = s.words[i];
          place[q] = s.places[i];
          const u32 key = K::of(word[q]);
          stays = reaches(r, key, place[q]);
          if (exact && stays && key <= r.hi && LAST_PLACE - place[q] <= r.phi) {
            const int t = atomicAdd(&s.ties, 1);
            keys[t] = key, places[t] = place[q], words[t] = word[q];
            stays = false;
          }
        }
        votes[q] = __ballot_sync(ALL_LANES, stays);
      }
      sync();  // All have read; what is written lies at or before what has been read.
      int to = 0;
      if (lane_of() == 0) {
        int all = 0;
#pragma unroll
        for (int q = 0; q < Q; ++q) all += __popc(votes[q]);
        to = atomicAdd(&s.kept, all);
      }
      to = __shfl_sync(ALL_LANES, to, 0);
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        if (votes[q] >> lane_of() & 1)
          store(to + __popc(votes[q] & lanes_below()), word[q], place[q]);
        to += __popc(votes[q]);
      }
    }
    sync();
    if (exact) {
      // A warp ranks a candidate at a time: how many are ahead of it?
#pragma unroll 1
      for (int c = tid / 32; c < r.inside; c += P::THREADS / 32) {
        const u32 key = keys[c], place = places[c];
        int ahead = 0;
        for (int j = lane_of(); j - lane_of() < r.inside; j += 32) {
          const bool mine =
              j < r.inside && (keys[j] > key || (keys[j] == key && places[j] < place));
          ahead += __popc(__ballot_sync(ALL_LANES, mine));
        }
        if (lane_of() == 0 && ahead < k - r.above) store(r.above + ahead, (Word)words[c], place);
      }
      sync();
    }
  }

  AK_INLINE void store(int to, Word word, u32 place) {
    s.words[to] = word;
    s.places[to] = place;
  }
};

}  // namespace ak
