// What a kernel is told, and which elements of a row are candidates.
namespace ak {

constexpr int MAX_TOPK = 4096;
constexpr u32 LAST_PLACE = (1u << 24) - 1;
constexpr u32 NOWHERE = 0x7fffffff;
enum Order { UNORDERED, BY_VALUE, BY_INDEX };
enum Has {
  HAS_BEGIN = 1,
  HAS_END = 2,
  HAS_OFFSET = 4,
  HAS_PAGES = 8,
  HAS_VALUES = 16,
  HAS_WIDE = 32
};

// Strides in elements; `misaligned`: elements from a 16-byte boundary to the input's first.
struct Arguments {
  const void* input;
  const int *begin, *end, *draws, *offset, *pages;
  void *values, *indices;
  int rows, row_len, misaligned, topk, order, flags, page_size;
  u32 value_fill;
  long long stride, values_stride, indices_stride, pages_stride, index_fill;
};

// Places count from the 16-byte boundary at or before the first candidate: whole vectors are
// aligned for any stride, and places order as indices do.
struct Bounds {
  int first, last, shift;  // places; index minus place
  long long origin;        // element that place 0 is

  AK_INLINE int count() const { return last - first; }
};

template <class F>
AK_INLINE Bounds bounds_of(const Arguments& a, int row) {
  constexpr int PER = 16 / sizeof(typename F::Word);
  int first = 0, last = a.row_len;
  if (a.flags & HAS_BEGIN) first = min(max(a.begin[row], 0), a.row_len);
  if (a.flags & HAS_END) last = min(a.end[row], a.row_len);
  last = max(last, first);
  const long long base = (long long)row * a.stride;
  const int off = (int)((base + a.misaligned) % PER);
  Bounds b;
  b.shift = (first + off) / PER * PER - off;
  b.first = first - b.shift;
  b.last = last - b.shift;
  b.origin = base + b.shift;
  return b;
}

}  // namespace ak
