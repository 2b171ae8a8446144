// What a CTA of the resident kernels holds: its piece of a row, bins, and the best it found.
namespace ak {

// CLUSTER CTAs of THREADS share a row, up to ELEMENTS each; at most TOPK are selected.
template <class Format, int THREADS_, int ELEMENTS_, int TOPK_, int CLUSTER_, int LOG_BINS_>
struct Piece {
  using F = Format;
  using Word = typename F::Word;
  static constexpr int THREADS = THREADS_, TOPK = TOPK_, CLUSTER = CLUSTER_;
  static constexpr int LOG_BINS = LOG_BINS_, BINS = 1 << LOG_BINS, WARPS = THREADS / 32;
  // Log2 of the keys of a bin: in the highest digit, and in the first one above a floor, which is
  // near the k-th best.
  static constexpr int COARSE = F::BITS - LOG_BINS, FINE = F::BITS == 32 ? 22 - LOG_BINS : 0;
  // Keys above a floor that are told apart at first, where those above them are left out: the last
  // bin of a 16-bit type takes them one by one, as there are few.
  static constexpr bool WINDOWED = F::BITS == 32;
  static constexpr u32 WINDOW = (u32)(BINS - 1) << FINE;
  // A word of hits stands for 32 elements, PACK vectors of 16 bytes.
  static constexpr int PER = 16 / sizeof(Word), PACK = 32 / PER;
  // A row may begin behind a boundary of 16 bytes.
  static constexpr int VECTORS = (ELEMENTS_ / PER + 1 + 7) / 8 * 8;
  static constexpr int PACKS = (VECTORS + THREADS * PACK - 1) / (THREADS * PACK);
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
  uint4 row[P::VECTORS];
  uint4 room[P::ROOM / 16];
  u32 groups[2][P::CLUSTER > 1 ? P::CLUSTER : 1][32];
  uint2 peers[P::CLUSTER > 1 ? P::CLUSTER : 1][32];
  u32 sums[32];
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

// Where vector j lies: lanes that read every second, fourth or eighth one meet different banks.
AK_INLINE int slot_of(int j) { return j ^ (j >> 3 & 7); }

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

// Vectors of a row that a CTA holds; each thread looks at `each` that lie next to each other.
struct Held {
  int first, count, each;

  AK_INLINE int mine() const { return threadIdx.x * each; }
};

template <class P>
AK_INLINE Held held_by(const Bounds& b, int part) {
  const int vectors = (b.last + P::PER - 1) / P::PER;
  const int share = (vectors + P::CLUSTER - 1) / P::CLUSTER;
  const int count = max(min(share, vectors - part * share), 0);
  return {part * share, count, (count + P::THREADS - 1) / P::THREADS};
}

}  // namespace ak
