// The bin that holds the k-th best: of a CTA's counts, or of their sums over a cluster.
namespace ak {

template <class P>
struct Finder {
  Resident<P>& s;
  const int part;

  AK_INLINE void sync() const { sync_first<P::THREADS>(); }
  AK_INLINE static int lane() { return lane_of(); }
  AK_INLINE static int warp() { return threadIdx.x / 32; }

  AK_INLINE void clear(int set) {
    uint4* bins = (uint4*)s.bins(set);
    for (int i = threadIdx.x; i < P::BINS / 4; i += P::THREADS) bins[i] = make_uint4(0, 0, 0, 0);
  }

  // Sum over the lanes up to this one.
  AK_INLINE static u32 running(u32 n) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const u32 other = __shfl_up_sync(ALL_LANES, n, d);
      if (lane() >= d) n += other;
    }
    return n;
  }

  // Sum over the threads before this one, and over all; sums of warps meet in shared memory.
  AK_INLINE u32 before_me(u32 mine, u32& total) {
    const u32 up_to = running(mine);
    if (lane() == 31) s.sums[warp()] = up_to;
    sync();
    u32 before = 0;
    total = 0;
    if constexpr (P::WARPS <= 8) {
#pragma unroll
      for (int w = 0; w < P::WARPS; ++w) {
        if (w < warp()) before += s.sums[w];
        total += s.sums[w];
      }
    } else {
      const u32 n = lane() < P::WARPS ? s.sums[lane()] : 0;
      before = warp_sum(lane() < warp() ? n : 0);
      total = warp_sum(n);
    }
    return before + up_to - mine;
  }

  // After all have counted: the highest bin that, with all above it, holds `aim(total)`. Clears the
  // bins. Nothing but the total is meant where that is less than the aim.
  template <class Aim>
  AK_INLINE Pivot local(Aim aim) {
    constexpr int MINE = P::BINS / P::THREADS;
    sync();
    u32* bins = s.bins(0) + (P::THREADS - 1 - (int)threadIdx.x) * MINE;
    u32 n[MINE], sum = 0;
#pragma unroll
    for (int i = 0; i < MINE; i += 2) {
      uint2* two = (uint2*)(bins + i);
      n[i] = two->x, n[i + 1] = two->y;
      *two = make_uint2(0, 0);
      sum += n[i] + n[i + 1];
    }
    u32 total;
    u32 above = before_me(sum, total);
    const u32 k = aim((int)total);
    if (above < k && above + sum >= k) {
      int bin = 0;
      u32 inside = 0, over = 0;
#pragma unroll
      for (int i = MINE - 1; i >= 0; --i) {
        if (above < k && above + n[i] >= k) {
          bin = i, inside = n[i], over = above;
        }
        above += n[i];
      }
      s.found = {(P::THREADS - 1 - (int)threadIdx.x) * MINE + bin, (int)over, (int)inside, 0, 0, 0};
    }
    sync();
    Pivot f = s.found;
    f.total = (int)total;
    return f;
  }

  // The same over a cluster, digit after digit (`turn`): sums of groups of bins go to all CTAs;
  // behind the barrier, each warp fetches a peer's bins of the group of the k-th best.
  AK_INLINE Pivot together(int turn, u32 k) {
    constexpr int GROUP = P::BINS / 32;
    static_assert(GROUP == 64 || P::CLUSTER == 1);
    const int set = turn & 1;
    sync();
    for (int g = warp(); g < 32; g += P::WARPS) {
      const u32* bins = s.bins(set) + (31 - g) * GROUP;
      const u32 sum = warp_sum(bins[lane()] + bins[lane() + 32]);
      if (lane() == 0) s.sums[g] = sum;
    }
    sync();
    // A peer gets them in one store of a warp: single words to many peers are far slower.
    for (int c = warp(); c < P::CLUSTER; c += P::WARPS) {
      *of_peer(&s.groups[set][part][lane()], c) = s.sums[lane()];
    }
    cluster_arrive();
    cluster_wait();
    u32 all = 0, before = 0;
#pragma unroll
    for (int c = 0; c < P::CLUSTER; ++c) {
      const u32 n = s.groups[set][c][lane()];
      all += n;
      if (c < part) before += n;
    }
    const u32 up_to = running(all);
    Pivot f = {0, 0, 0, (int)__shfl_sync(ALL_LANES, up_to, 31), 0, 0};
    const u32 votes = __ballot_sync(ALL_LANES, up_to >= k);
    const int g = votes ? __ffs(votes) - 1 : 31;
    // Two bins a lane, higher ones in lower lanes.
    const int low = (31 - g) * GROUP + 62 - 2 * lane();
    for (int c = warp(); c < P::CLUSTER; c += P::WARPS) {
      s.peers[c][lane()] = *of_peer((uint2*)(s.bins(set) + low), c);
    }
    clear(set ^ 1);
    sync();
    f.above = __shfl_sync(ALL_LANES, up_to - all, g);
    f.above_before = warp_sum(lane() < g ? before : 0);
    in_group(f, low, k);
    return f;
  }

  AK_INLINE void in_group(Pivot& f, int low, u32 k) const {
    uint2 all = make_uint2(0, 0), before = make_uint2(0, 0);
#pragma unroll
    for (int c = 0; c < P::CLUSTER; ++c) {
      const uint2 n = s.peers[c][lane()];
      all.x += n.x, all.y += n.y;
      if (c < part) before.x += n.x, before.y += n.y;
    }
    const u32 sum = all.x + all.y, over = (u32)f.above + running(sum) - sum;
    const bool upper = over + all.y >= k;
    const u32 votes = __ballot_sync(ALL_LANES, over < k && over + sum >= k);
    const int at = votes ? __ffs(votes) - 1 : 0;
    f.bin = __shfl_sync(ALL_LANES, low + upper, at);
    f.above = __shfl_sync(ALL_LANES, upper ? over : over + all.y, at);
    f.inside = __shfl_sync(ALL_LANES, upper ? all.y : all.x, at);
    f.inside_before = __shfl_sync(ALL_LANES, upper ? before.y : before.x, at);
    const u32 own = upper ? 0 : before.y;
    f.above_before += warp_sum(lane() < at ? before.x + before.y : lane() == at ? own : 0);
  }
};

}  // namespace ak
