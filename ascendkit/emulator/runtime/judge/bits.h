// One bit a byte of a memory: defined, written. Whole words at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace ak::judge {

class Bits {
 public:
  Bits() = default;
  // calloc: pages of a large tensor that nobody writes cost nothing.
  explicit Bits(uint64_t bytes)
      : size_(bytes), word_(static_cast<uint64_t*>(std::calloc(bytes / 64 + 2, 8))) {
    if (!word_) throw std::bad_alloc();
  }
  uint64_t size() const { return size_; }
  const uint64_t* words() const { return word_.get(); }

  bool none() const {
    return !size_ || std::all_of(word_.get(), word_.get() + (size_ + 63) / 64,
                                 [](uint64_t w) { return w == 0; });
  }
  bool test(uint64_t i) const { return word_[i / 64] >> (i % 64) & 1; }
  void fill(uint64_t lo, uint64_t hi, bool on) {
    each(lo, hi, [&](uint64_t& w, uint64_t mask) { on ? w |= mask : w &= ~mask; });
  }
  // Several host threads may set bits of one word.
  void fill_shared(uint64_t lo, uint64_t hi) {
    each(lo, hi, [](uint64_t& w, uint64_t mask) {
      if ((__atomic_load_n(&w, __ATOMIC_RELAXED) & mask) != mask)
        __atomic_fetch_or(&w, mask, __ATOMIC_RELAXED);
    });
  }
  bool all(uint64_t lo, uint64_t hi) const {
    uint64_t missing = 0;
    each(lo, hi, [&](const uint64_t& w, uint64_t mask) { missing |= mask & ~w; });
    return !missing;
  }
  // From the first to past the last clear bit; an empty range if there is none.
  std::pair<uint64_t, uint64_t> missing(uint64_t lo, uint64_t hi) const {
    uint64_t first = hi, last = lo;
    for (uint64_t w = lo / 64; w * 64 < hi; ++w) {
      uint64_t clear = ~word_[w] & mask_of(w, lo, hi);
      if (!clear) continue;
      first = std::min(first, w * 64 + uint64_t(std::countr_zero(clear)));
      last = w * 64 + 64 - uint64_t(std::countl_zero(clear));
    }
    return first < last ? std::pair(first, last) : std::pair(lo, lo);
  }
  void copy(uint64_t to, const Bits& from, uint64_t at, uint64_t bytes) {
    if (from.all(at, at + bytes)) return fill(to, to + bytes, true);
    for (uint64_t i = 0; i < bytes; ++i) fill(to + i, to + i + 1, from.test(at + i));
  }

 private:
  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };
  static uint64_t mask_of(uint64_t w, uint64_t lo, uint64_t hi) {
    uint64_t mask = ~uint64_t(0);
    if (w * 64 < lo) mask &= ~uint64_t(0) << (lo % 64);
    if (hi < w * 64 + 64) mask &= ~(~uint64_t(0) << (hi % 64));
    return mask;
  }
  template <class F>
  void each(uint64_t lo, uint64_t hi, F f) const {
    if (lo >= hi) return;
    uint64_t first = lo / 64, last = (hi - 1) / 64;
    if (first == last) return f(word_[first], mask_of(first, lo, hi));
    f(word_[first], mask_of(first, lo, hi));
    for (uint64_t w = first + 1; w < last; ++w) f(word_[w], ~uint64_t(0));
    f(word_[last], mask_of(last, lo, hi));
  }
  uint64_t size_ = 0;
  std::unique_ptr<uint64_t[], Free> word_;
};

}  // namespace ak::judge
