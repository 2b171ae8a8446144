// Short and crooked copies, and lines of global memory that several of them or cores share.
#include <algorithm>
#include <cstdio>

#include "runtime/judge/look.h"

namespace ak::judge {

void Look::bursts(const Access& gm, const Access& chip, uint64_t length) {
  if (gm.rows < 2) return;
  if (chip.stride % int64_t(kLine)) {
    Finding f = finding(length < kLine ? "AK-BURST-001" : "AK-BURST-002", chip, chip.base,
                        uint64_t(std::abs(chip.stride)) * (chip.rows - 1) + chip.row_bytes);
    std::snprintf(f.detail, sizeof f.detail,
                  length < kLine ? "blockLen %llu B < 32 B with blockCount %u: rows lie %lld B "
                                   "apart on the chip"
                                 : "rows of %llu B, blockCount %u, lie %lld B apart on the chip",
                  (unsigned long long)length, gm.rows, (long long)chip.stride);
    report(f);
  }
  const Access& to = gm.write ? gm : chip;
  if (uint64_t(std::abs(to.stride)) < to.row_bytes) {
    Finding f = finding("AK-BURST-003", to, to.base, to.row_bytes);
    std::snprintf(f.detail, sizeof f.detail, "%u bursts of %llu B lie %lld B apart", to.rows,
                  (unsigned long long)to.row_bytes, (long long)to.stride);
    report(f);
  }
  if (!gm.write || !advice_ || gm.stride < int64_t(length)) return;
  for (uint32_t r = 0; r + 1 < std::min<uint32_t>(gm.rows, kLine + 1); ++r) {
    uint64_t end = at(gm, r) + length, next = at(gm, r + 1);
    if ((end - 1) / kLine != next / kLine) continue;
    Finding f = finding("AK-BURST-004", gm, at(gm, r), uint64_t(gm.stride) + length);
    f.other_site = head_.site, f.other_block = head_.block, f.other_pipe = head_.pipe;
    f.other_sub = head_.sub, f.other_aic = head_.aic, f.other_write = 1;
    std::snprintf(f.detail, sizeof f.detail, "bursts %u and %u of %u, %llu B each", r, r + 1,
                  gm.rows, (unsigned long long)length);
    report(f);
    return;
  }
}

// Lines of global memory that several cores wrote parts of.
void shared_lines(std::vector<Edge>& edges) {
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.order() < b.order(); });
  for (size_t i = 1; i < edges.size(); ++i) {
    const Edge &a = edges[i - 1], &b = edges[i];
    if (a.line != b.line || (a.block == b.block && a.aic == b.aic && a.sub == b.sub)) continue;
    Finding f{};
    std::snprintf(f.code, sizeof f.code, "AK-BURST-005");
    f.site = b.site, f.block = b.block, f.aic = b.aic, f.sub = b.sub, f.pipe = b.pipe;
    f.other_site = a.site, f.other_block = a.block, f.other_aic = a.aic, f.other_sub = a.sub;
    f.other_pipe = a.pipe, f.write = f.other_write = 1;
    f.space = uint8_t(Space::GM), f.base = a.line * kLine, f.bytes = kLine, f.count = 1;
    report(f);
  }
}

}  // namespace ak::judge
