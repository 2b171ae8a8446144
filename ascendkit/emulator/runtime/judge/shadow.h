// Who last wrote and read each byte of a memory. Cells of a few hundred bytes are split, down to
// bytes, where accesses cover them in part.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/judge/clock.h"

namespace ak::judge {

constexpr uint32_t kSiteMask = (1u << 24) - 1;
// Beside the line of an access, what else matters when another one meets it.
enum Mark : uint32_t {
  kAtomicMark = 1u << 31,
  kUnitMark = 1u << 30,    // takes part in the hand-over between the matrix unit and FixPipe
  kCachedMark = 1u << 29,  // through the data cache of the scalar core
  kDeviceMark = 1u << 28,  // scalar, past the cache
};

struct Seen {
  Epoch epoch = 0;
  uint32_t site = 0;  // and marks
};
struct Cell {
  Seen write, read[3];
  uint32_t child = 0;  // index of the first of its parts; 0: whole
};

// Memory of fixed levels: cells of 4096, 256, 32, 4 and 1 bytes.
constexpr uint32_t kLevels = 5;
constexpr uint32_t kCellBytes[kLevels] = {4096, 256, 32, 4, 1};
constexpr uint32_t kParts[kLevels] = {16, 8, 8, 4, 0};

class Cells {
 public:
  // References stay valid while it grows. The parts of a cell lie in one chunk.
  Cell& operator[](uint32_t i) { return chunks_[i / kChunk][i % kChunk]; }
  uint32_t split(const Cell& whole, uint32_t level) {
    uint32_t n = kParts[level], first;
    auto& free = free_[level];
    if (!free.empty()) {
      first = free.back();
      free.pop_back();
    } else {
      if (used_ % kChunk + n > kChunk) used_ += kChunk - used_ % kChunk;
      if (used_ / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Cell[]>(kChunk));
      first = used_, used_ += n;
    }
    Cell part = whole;
    part.child = 0;
    std::fill_n(&(*this)[first], n, part);
    return first;
  }
  // Gives the parts of a cell back, and theirs.
  void merge(Cell& cell, uint32_t level) {
    if (!cell.child) return;
    Cell* part = &(*this)[cell.child];
    if (level + 2 < kLevels)
      for (uint32_t i = 0; i < kParts[level]; ++i) merge(part[i], level + 1);
    free_[level].push_back(cell.child);
    cell.child = 0;
  }

 private:
  static constexpr uint32_t kChunk = 1024;
  std::vector<std::unique_ptr<Cell[]>> chunks_;
  uint32_t used_ = 1;  // 0 is no child
  std::vector<uint32_t> free_[kLevels];
};

// One memory of a block: an array of cells of 256 bytes on chip, pages of 4096 in global memory.
class Shadow {
 public:
  Shadow(Cells& cells, uint64_t bytes)
      : cells_(cells), top_(bytes ? 1 : 0), flat_(bytes / kCellBytes[1] + (bytes != 0)) {}
  // Calls touch(cell, low, high) for the smallest cells that cover [low, high) exactly.
  template <class TOUCH>
  void each(uint64_t low, uint64_t high, bool write, TOUCH& touch) {
    uint64_t size = kCellBytes[top_];
    for (uint64_t at = low / size * size; at < high; at += size) {
      Cell* cell = top(at / size);
      if (cell) visit(*cell, top_, at, low, high, write, touch);
    }
  }

 private:
  Cell* top(uint64_t i) {
    if (top_) return i < flat_.size() ? &flat_[i] : nullptr;
    if (i != last_page_ || !last_) last_page_ = i, last_ = &pages_[i];
    return last_;
  }
  template <class TOUCH>
  void visit(Cell& cell, uint32_t level, uint64_t at, uint64_t low, uint64_t high, bool write,
             TOUCH& touch) {
    uint64_t size = kCellBytes[level], end = at + size;
    bool whole = low <= at && high >= end;
    if (whole && !cell.child) return touch(cell, at, end, true);
    if (!cell.child) cell.child = cells_.split(cell, level);
    uint64_t part = kCellBytes[level + 1];
    uint64_t first = std::max(low, at), last = std::min(high, end);
    Cell* parts = &cells_[cell.child];
    for (uint64_t p = first / part * part; p < last; p += part)
      visit(parts[(p - at) / part], level + 1, p, low, high, write, touch);
    if (whole && write) {
      // Every part has the same story now.
      cell.write = parts->write;
      for (Seen& r : cell.read) r = {};
      cells_.merge(cell, level);
    }
  }

  Cells& cells_;
  uint32_t top_;
  std::vector<Cell> flat_;
  std::unordered_map<uint64_t, Cell> pages_;
  uint64_t last_page_ = 0;
  Cell* last_ = nullptr;
};

}  // namespace ak::judge
