// What a CTA is told, what it has in shared memory, and where the candidates of a row lie.
namespace ak {

constexpr int LOG_BINS = 11, BINS = 1 << LOG_BINS;
constexpr int MAX_TOPK = 4096;
constexpr int FEW = 128;  // undecided candidates that are ranked pair by pair
constexpr u32 LAST_PLACE = (1u << 24) - 1;
constexpr u32 NOWHERE = 0x7fffffff;
enum Order { UNORDERED, BY_VALUE, BY_INDEX };
enum Has { HAS_BEGIN = 1, HAS_END = 2, HAS_OFFSET = 4, HAS_PAGES = 8, HAS_VALUES = 16, HAS_WIDE = 32 };

struct Arguments {
  const void* input;
  const int *begin, *end, *draws, *offset, *pages;
  void *values, *indices;
  int rows, row_len, misaligned, topk, order, flags, page_size;
  u32 value_fill;
  long long stride, values_stride, indices_stride, pages_stride, index_fill;
};

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
  // Blocks held until the first threshold is known to be low enough; the others load meanwhile.
  static constexpr int WINDOW = STAGES > 4 ? 4 : STAGES > 1 ? STAGES - 1 : 1;
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
  int count, kept, ties;
};

// Places count from the 16-byte boundary at or before the first candidate: whole vectors are
// aligned for any stride, and places order as indices do.
struct Bounds {
  int first, last, shift;  // places; index minus place
  long long origin;        // element that place 0 is
};

template <class P>
AK_INLINE Bounds bounds_of(const Arguments& a, int row) {
  int first = 0, last = a.row_len;
  if (a.flags & HAS_BEGIN) first = min(max(a.begin[row], 0), a.row_len);
  if (a.flags & HAS_END) last = min(a.end[row], a.row_len);
  last = max(last, first);
  const long long base = (long long)row * a.stride;
  const int off = (int)((base + a.misaligned) % P::PER);
  Bounds b;
  b.shift = (first + off) / P::PER * P::PER - off;
  b.first = first - b.shift;
  b.last = last - b.shift;
  b.origin = base + b.shift;
  return b;
}

// Rows of which everything is selected, in the order in which it lies there: nothing to load.
AK_INLINE bool trivial(const Arguments& a, const Bounds& b) {
  const int count = b.last - b.first;
  return count == 0 || (count <= a.topk && a.order != BY_VALUE);
}

}  // namespace ak
