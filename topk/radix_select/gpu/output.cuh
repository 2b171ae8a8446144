// The order of what was selected, and the outputs of a row. Candidates are words (bits of the
// input's elements) and places, in shared memory; THREADS is how many threads take part, the first
// ones of the CTA.
namespace ak {

template <class F>
AK_INLINE bool before(u32 word, u32 place, u32 other_word, u32 other_place, bool by_value) {
  if (by_value) {
    const u32 a = Keys<F>::of(word), b = Keys<F>::of(other_word);
    if (a != b) return a > b;
  }
  return place < other_place;
}

// Bitonic; the arrays have room for the next power of two. A warp's pairs lie in its own 64
// candidates while they are at most 32 apart.
template <class F, int THREADS>
AK_INLINE void sort(typename F::Word* words, u32* places, int n, bool by_value) {
  using Word = typename F::Word;
  const int tid = threadIdx.x;
  int size = 2;
  while (size < n) size *= 2;
  for (int i = n + tid; i < size; i += THREADS) {
    words[i] = (Word)(F::INF | Keys<F>::SIGN);  // -inf, and the last of them
    places[i] = NOWHERE;
  }
  sync_first<THREADS>();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int c = tid; c < size / 2; c += THREADS) {
        const int i = 2 * c - (c & (step - 1)), j = i + step;
        const Word w = words[i], x = words[j];
        const u32 p = places[i], q = places[j];
        if (before<F>(x, q, w, p, by_value) == ((i & run) == 0)) {
          words[i] = x, places[i] = q;
          words[j] = w, places[j] = p;
        }
      }
      const int next = step > 1 ? step / 2 : run;
      if (next > 32 || step > 32) {
        sync_first<THREADS>();
      } else {
        __syncwarp();
      }
    }
  }
  sync_first<THREADS>();
}

AK_INLINE void write_index(const Arguments& a, int row, int i, long long index) {
  const long long at = (long long)row * a.indices_stride + i;
  if (a.flags & HAS_WIDE) {
    ((long long*)a.indices)[at] = index;
  } else {
    ((int*)a.indices)[at] = (int)index;
  }
}

// What an index of a row becomes: its slot in the page table, then the row's offset.
AK_INLINE long long output_index(const Arguments& a, int row, int here) {
  long long index = here;
  if (a.flags & HAS_PAGES) {
    const long long page = a.pages[(long long)row * a.pages_stride + here / a.page_size];
    index = page * a.page_size + here % a.page_size;
  }
  return index + (a.flags & HAS_OFFSET ? a.offset[row] : 0);
}

// Output i of a row.
template <class F>
AK_INLINE void write_one(const Arguments& a, const Bounds& b, int row, int i, u32 word, u32 place) {
  write_index(a, row, i, output_index(a, row, (int)place + b.shift));
  if (a.flags & HAS_VALUES) {
    ((typename F::Word*)a.values)[(long long)row * a.values_stride + i] = (typename F::Word)word;
  }
}

// Fill values from output n on.
template <class F, int THREADS>
AK_INLINE void write_fill(const Arguments& a, int row, int n) {
  using Word = typename F::Word;
#pragma unroll 1
  for (int i = n + threadIdx.x; i < a.topk; i += THREADS) {
    write_index(a, row, i, a.index_fill);
    if (a.flags & HAS_VALUES) {
      ((Word*)a.values)[(long long)row * a.values_stride + i] = (Word)a.value_fill;
    }
  }
}

// n candidates, then fill values up to topk.
template <class F, int THREADS>
AK_INLINE void write_row(const typename F::Word* words, const u32* places, const Arguments& a,
                         const Bounds& b, int row, int n) {
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += THREADS) write_one<F>(a, b, row, i, words[i], places[i]);
  write_fill<F, THREADS>(a, row, n);
}

// Rows of which everything is selected, in the order in which it lies there: nothing to look at.
AK_INLINE bool trivial(const Arguments& a, const Bounds& b) {
  return b.count() == 0 || (b.count() <= a.topk && a.order != BY_VALUE);
}
template <class F, int THREADS>
AK_INLINE void write_trivial(const Arguments& a, const Bounds& b, int row) {
  const typename F::Word* in = (const typename F::Word*)a.input + b.origin;
  const int n = b.count();
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += THREADS) {
    write_one<F>(a, b, row, i, a.flags & HAS_VALUES ? in[b.first + i] : 0, b.first + i);
  }
  write_fill<F, THREADS>(a, row, n);
}

}  // namespace ak
