// What a CTA of the resident kernels holds: its piece of a row, bins, and the best it found.
namespace ak {

constexpr int CHUNK = 32;  // elements whose hits are the bits of one word

// CLUSTER CTAs of THREADS share a row, up to CHUNKS each; at most TOPK elements are selected.
template <class Format, int THREADS_, int CHUNKS_, int TOPK_, int CLUSTER_, int LOG_BINS_>
struct Piece {
  using F = Format;
  using Word = typename F::Word;
  static constexpr int THREADS = THREADS_, CHUNKS = CHUNKS_, TOPK = TOPK_, CLUSTER = CLUSTER_;
  static constexpr int LOG_BINS = LOG_BINS_, BINS = 1 << LOG_BINS, WARPS = THREADS / 32;
  static constexpr int PER = 16 / sizeof(Word), VECTORS = CHUNK / PER;
  // Chunks of one thread where each has those that lie next to each other.
  static constexpr int TURNS = (CHUNKS + THREADS - 1) / THREADS;
  // Peers read the bins of a digit while those of the next one are counted.
  static constexpr int SETS = CLUSTER > 1 ? 2 : 1;
  static constexpr int BEST = TOPK * (4 + (int)sizeof(Word));
  static constexpr int BIN_BYTES = SETS * BINS * 4;
  static constexpr int ROOM = CLUSTER > 1 ? BIN_BYTES + BEST : BIN_BYTES > BEST ? BIN_BYTES : BEST;
};

// A digit's outcome: the bin of the k-th best, what lies above it and in it; and how much of both
// the CTAs before this one have.
struct Pivot {
  int bin, above, inside, total, above_before, inside_before;
};

template <class P>
struct Resident {
  uint4 row[P::CHUNKS * P::VECTORS];
  uint4 room[P::ROOM / 16];
  u32 groups[2][P::CLUSTER > 1 ? P::CLUSTER : 1][33];
  u32 sums[32], floors[16];
  Pivot found;
  u64 ranked[P::CLUSTER > 1 ? P::TOPK : 1];
  u32 ranked_words[P::CLUSTER > 1 ? P::TOPK : 1];

  AK_INLINE u32* bins(int set) { return (u32*)room + set * P::BINS; }
  // With one CTA, the best take the place of the bins.
  AK_INLINE u32* places() {
    return (u32*)((unsigned char*)room + (P::CLUSTER > 1 ? P::BIN_BYTES : 0));
  }
  AK_INLINE typename P::Word* words() { return (typename P::Word*)(places() + P::TOPK); }
};

// Where vector v of a chunk lies: turned, so that lanes that read neighbouring chunks meet
// different banks.
template <class P>
AK_INLINE int slot_of(int chunk, int v) {
  const int turn = P::VECTORS == 4 ? (chunk >> 1) ^ (chunk >> 3) : chunk ^ (chunk >> 3);
  return chunk * P::VECTORS + (v ^ (turn & (P::VECTORS - 1)));
}

// Hits of `passing` in the order of the elements: 16-bit types have even ones in the lower half.
template <class F>
AK_INLINE u32 in_order(u32 m) {
  if constexpr (F::BITS == 16) {
    u32 t = (m ^ m >> 8) & 0x0000ff00u;
    m ^= t ^ t << 8;
    t = (m ^ m >> 4) & 0x00f000f0u;
    m ^= t ^ t << 4;
    t = (m ^ m >> 2) & 0x0c0c0c0cu;
    m ^= t ^ t << 2;
    t = (m ^ m >> 1) & 0x22222222u;
    m ^= t ^ t << 1;
  }
  return m;
}

// The row of a CTA, as far as the CTA holds it.
struct Held {
  int first, count;  // chunks
};

template <class P>
AK_INLINE Held held_by(const Bounds& b, int part) {
  const int chunks = (b.last + CHUNK - 1) / CHUNK, share = (chunks + P::CLUSTER - 1) / P::CLUSTER;
  return {part * share, max(min(share, chunks - part * share), 0)};
}

}  // namespace ak
