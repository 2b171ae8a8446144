// The order of what was selected, and the outputs of a row.
namespace ak {

template <class P>
AK_INLINE bool before(const Shared<P>& s, int i, int j, bool by_value) {
  if (by_value) {
    const u32 a = Keys<typename P::F>::of(s.words[i]), b = Keys<typename P::F>::of(s.words[j]);
    if (a != b) return a > b;
  }
  return s.places[i] < s.places[j];
}

// Bitonic. A warp's pairs lie in its own 64 candidates while they are at most 32 apart.
template <class P>
AK_INLINE void sort(Shared<P>& s, int n, bool by_value) {
  using F = typename P::F;
  const int tid = threadIdx.x;
  int size = 2;
  while (size < n) size *= 2;
  for (int i = n + tid; i < size; i += P::THREADS) {
    s.words[i] = (typename P::Word)(F::INF | Keys<F>::SIGN);  // -inf, and the last of them
    s.places[i] = NOWHERE;
  }
  sync_first<P::THREADS>();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int c = tid; c < size / 2; c += P::THREADS) {
        const int i = 2 * c - (c & (step - 1)), j = i + step;
        if (before(s, j, i, by_value) == ((i & run) == 0)) {
          const typename P::Word w = s.words[i];
          const u32 p = s.places[i];
          s.words[i] = s.words[j], s.places[i] = s.places[j];
          s.words[j] = w, s.places[j] = p;
        }
      }
      const int next = step > 1 ? step / 2 : run;
      if (next > 32 || step > 32) {
        sync_first<P::THREADS>();
      } else {
        __syncwarp();
      }
    }
  }
  sync_first<P::THREADS>();
}

AK_INLINE void write_index(const Arguments& a, int row, int i, long long index) {
  const long long at = (long long)row * a.indices_stride + i;
  if (a.flags & HAS_WIDE) {
    ((long long*)a.indices)[at] = index;
  } else {
    ((int*)a.indices)[at] = (int)index;
  }
}

AK_INLINE long long output_index(const Arguments& a, int row, int here, long long offset) {
  long long index = here;
  if (a.flags & HAS_PAGES) {
    const long long page = a.pages[(long long)row * a.pages_stride + here / a.page_size];
    index = page * a.page_size + here % a.page_size;
  }
  return index + offset;
}

// n candidates, then fill values up to topk.
template <class P>
AK_INLINE void write_row(const Shared<P>& s, const Arguments& a, const Bounds& b, int row, int n) {
  using Word = typename P::Word;
  const long long offset = a.flags & HAS_OFFSET ? a.offset[row] : 0;
  Word* values = (Word*)a.values + (long long)row * a.values_stride;
  for (int i = threadIdx.x; i < a.topk; i += P::THREADS) {
    const bool found = i < n;
    const int here = found ? (int)s.places[i] + b.shift : 0;
    write_index(a, row, i, found ? output_index(a, row, here, offset) : a.index_fill);
    if (a.flags & HAS_VALUES) values[i] = found ? s.words[i] : (Word)a.value_fill;
  }
}

// Rows that `trivial` names.
template <class P>
AK_INLINE void write_all(const Arguments& a, const Bounds& b, int row) {
  using Word = typename P::Word;
  const int n = b.last - b.first, first = b.first + b.shift;
  const long long offset = a.flags & HAS_OFFSET ? a.offset[row] : 0;
  const Word* in = (const Word*)a.input + b.origin + b.first;
  Word* values = (Word*)a.values + (long long)row * a.values_stride;
  for (int i = threadIdx.x; i < a.topk; i += P::THREADS) {
    const bool found = i < n;
    write_index(a, row, i, found ? output_index(a, row, first + i, offset) : a.index_fill);
    if (a.flags & HAS_VALUES) values[i] = found ? in[i] : (Word)a.value_fill;
  }
}

}  // namespace ak
