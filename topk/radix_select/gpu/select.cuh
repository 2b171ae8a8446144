// The streaming kernel: a warp that loads, threads that keep what passes, and what ends a row.
namespace ak {

// All shares of a row: one search over the sums of their bins, then what reaches its end goes to
// the first CTA, whose ring is free by then. Returns how many are selected, 0 to the other CTAs.
template <class P>
AK_INLINE int join(Shared<P>& s, Search<P>& search, int n, int k, u32 floor) {
  using K = Keys<typename P::F>;
  using Word = typename P::Word;
  // Candidates that reach the end of the search.
  constexpr int MOST = P::CAPACITY < MAX_TOPK + FEW ? P::CAPACITY : MAX_TOPK + FEW;
  static_assert(MOST * (sizeof(Word) + 4) <= sizeof(s.ring));
  const int part = search.part, tid = search.tid;
  if (tid < P::CLUSTER) *of_peer(&s.floors[part], tid) = floor;
  search.sync_cluster();
  u32 most = 0;
  for (int c = 0; c < P::CLUSTER; ++c) most = max(most, s.floors[c]);
  search.rebase(most);
  search.count_new(n);
  const auto found = search.template scan<true>([&](int total) { return (u32)min(k, total); });
  Range r = {most, most, 0, LAST_PLACE, found.total, 0};
  if (found.total > k) {
    r = search.range_of(found);
    search.template narrow<true>(r, n, k, 0, FEW);
  }
  Word* words = (Word*)s.ring;
  u32* places = (u32*)(words + MOST);
  int* count = of_peer(&s.counts[0], 0);
  if (part == 0 && tid == 0) s.counts[0] = 0;
  search.sync_cluster();
  for (int c = 0; c < n; c += P::THREADS) {
    const int i = c + tid;
    Word word = 0;
    u32 place = 0;
    if (i < n) word = s.words[i], place = s.places[i];
    const bool goes = i < n && search.reaches(r, K::of(word), place);
    const u32 votes = __ballot_sync(ALL_LANES, goes);
    int to = 0;
    if (lane_of() == 0 && votes) to = atomicAdd(count, __popc(votes));
    to = __shfl_sync(ALL_LANES, to, 0) + __popc(votes & lanes_below());
    if (goes) *of_peer(words + to, 0) = word, *of_peer(places + to, 0) = place;
  }
  search.sync_cluster();
  if (part) return 0;
  n = r.above + r.inside;
  for (int i = tid; i < n; i += P::THREADS) s.words[i] = words[i], s.places[i] = places[i];
  search.sync();
  if (n > k) search.take(r, n, k, true);
  return min(n, k);
}

// Rows of a CTA, or the one row of a cluster.
template <class P>
AK_INLINE void consume(Shared<P>& s, const Arguments& a, int first_row, int step, int part) {
  using F = typename P::F;
  Stream<P> stream(s, a, part);
#pragma unroll 1
  for (int row = first_row; row < a.rows; row += step) {
    const Bounds b = bounds_of<F>(a, row);
    if (trivial(a, b)) {
      if (part == 0) write_trivial<F, P::THREADS>(a, b, row);
      continue;
    }
    int n = stream.run(b, a.topk);
    if constexpr (P::CLUSTER > 1) n = join(s, stream.search, n, a.topk, stream.floor);
    if (part) return;
    if (a.order != UNORDERED) sort<F, P::THREADS>(s.words, s.places, n, a.order == BY_VALUE);
    write_row<F, P::THREADS>(s.words, s.places, a, b, row, n);
    stream.sync();  // before the next row's first candidates
  }
}

// The kernel: all threads of all CTAs. A cluster takes one row and no more.
template <class P>
AK_INLINE void select_rows(void* shared, const Arguments& a) {
  Shared<P>& s = *(Shared<P>*)shared;
  const int part = blockIdx.x % P::CLUSTER;
  const int first = blockIdx.x / P::CLUSTER, step = gridDim.x / P::CLUSTER;
  if (threadIdx.x == 0) {
    for (int i = 0; i < P::STAGES; ++i) {
      barrier_init(&s.full[i], 1);
      barrier_init(&s.empty[i], P::THREADS / 32);
    }
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
    consume<P>(s, a, first, step, part);
  }
}

}  // namespace ak
