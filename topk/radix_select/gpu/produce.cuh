// The producing warp: blocks of all rows of a CTA, in random order, into a ring of buffers. It runs
// ahead of the consumers by the length of the ring, across the ends of rows.
namespace ak {

template <class P>
struct Producer {
  Shared<P>& s;
  const Arguments& a;
  int slot = 0;
  u32 parity = 1;  // the first round finds every buffer empty

  AK_INLINE void load(const Bounds& b, int block) {
    const int lane = lane_of();
    using Word = typename P::Word;
    barrier_wait(&s.empty[slot], parity);
    const int low = max(b.first, block * P::BLOCK), high = min(b.last, (block + 1) * P::BLOCK);
    const int from = (low + P::PER - 1) / P::PER * P::PER, to = high / P::PER * P::PER;
    const Word* in = (const Word*)a.input + b.origin;
    Word* out = (Word*)s.ring[slot] - block * P::BLOCK;
    // Elements of vectors that cross an end of the row; nothing outside the row is read.
    const int head = min(from, high), tail = max(to, head);
    if (low < head || tail < high) {
      if (low + lane < head) out[low + lane] = in[low + lane];
      if (tail + lane < high) out[tail + lane] = in[tail + lane];
      before_bulk_copy();
    }
    __syncwarp();
    if (lane == 0) {
      const int bytes = max(to - from, 0) * (int)sizeof(Word);
      s.block[slot] = block;
      barrier_arrive_expect(&s.full[slot], bytes);
      if (bytes) bulk_copy(out + from, in + from, bytes, &s.full[slot]);
    }
    __syncwarp();
    if (++slot == P::STAGES) slot = 0, parity ^= 1;
  }

  // Entries below `blocks` of a random permutation of the next power of two, in their order: a
  // random permutation of the blocks. A cluster deals them out in turn.
  AK_INLINE void run(int first_row, int step, int part) {
    const int lane = lane_of();
    for (int row = first_row; row < a.rows; row += step) {
      const Bounds b = bounds_of<typename P::F>(a, row);
      if (trivial(a, b)) continue;
      const int blocks = (b.last + P::BLOCK - 1) / P::BLOCK;
      int size = 1;
      while (size < blocks) size *= 2;
      int turn = 0;
      int mine = lane < size ? a.draws[size + lane] : blocks;
      for (int at = 0; at < size; at += 32) {
        const int now = mine, next = at + 32 + lane;
        if (next < size) mine = a.draws[size + next];
        u32 votes = __ballot_sync(ALL_LANES, now < blocks);
        while (votes) {
          const int block = __shfl_sync(ALL_LANES, now, __ffs(votes) - 1);
          votes &= votes - 1;
          if (turn % P::CLUSTER == part) load(b, block);
          ++turn;
        }
      }
    }
  }
};

}  // namespace ak
