// How a streaming CTA is laid out: threads, ring, histogram, candidates.
namespace ak {

constexpr int LOG_BINS = 11, BINS = 1 << LOG_BINS;
constexpr int FEW = 128;  // undecided candidates that are ranked against each other

// THREADS consumers and one warp that produces; a block of a row is VECTORS 16-byte words a thread.
template <class Format, int THREADS_, int VECTORS_, int CAPACITY_, int STAGES_, int CLUSTER_>
struct Layout {
  using F = Format;
  using Word = typename F::Word;
  static constexpr int THREADS = THREADS_, VECTORS = VECTORS_, CAPACITY = CAPACITY_;
  static constexpr int STAGES = STAGES_, CLUSTER = CLUSTER_;
  static constexpr int PER = 16 / sizeof(Word);
  static constexpr int BLOCK = THREADS * VECTORS * PER;
  static constexpr int BYTES = THREADS * VECTORS * 16;
  // Blocks held until the first threshold is known, some 16,384 elements; the others load
  // meanwhile.
  static constexpr int HALF = (STAGES + 1) / 2, ENOUGH = 16384 / BLOCK;
  static constexpr int WINDOW = ENOUGH < 1 ? 1 : ENOUGH < HALF ? ENOUGH : HALF;
};

template <class P>
struct Shared {
  alignas(128) unsigned char ring[P::STAGES][P::BYTES];
  u32 bins[BINS];
  u32 total[P::CLUSTER > 1 ? BINS : 4];
  u32 places[P::CAPACITY];
  typename P::Word words[P::CAPACITY];
  u64 full[P::STAGES], empty[P::STAGES], peers;
  int block[P::STAGES];
  u32 sums[32], found[4], floors[16];
  int counts[16];
  int count, wanted, kept, ties;
};

}  // namespace ak
