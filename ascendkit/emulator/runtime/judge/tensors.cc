#include "runtime/judge/tensors.h"

#include <cstdio>

namespace ak::judge {
namespace {
uint64_t end_of(const View& v) {
  uint64_t end = v.base + v.run;
  for (uint32_t d = 0; d < v.dims; ++d) end += (v.size[d] - 1) * v.stride[d];
  return end;
}
// Dimensions come in order of falling strides and do not overlap, so the row of a byte is unique.
bool holds(const View& v, uint64_t lo, uint64_t bytes) {
  if (lo < v.base) return false;
  uint64_t at = lo - v.base;
  for (uint32_t d = 0; d < v.dims; ++d)
    at -= std::min(at / v.stride[d], v.size[d] - 1) * v.stride[d];
  return at + bytes <= v.run;
}
}  // namespace

bool Tensor::holds(uint64_t lo, uint64_t bytes) const {
  if (views.empty()) return lo >= region->base && lo + bytes <= region->base + region->bytes;
  for (const View* v : views)
    if (judge::holds(*v, lo, bytes)) return true;
  return false;
}

const View& Tensor::nearest(uint64_t lo) const {
  const View* best = views[0];
  uint64_t least = ~uint64_t(0);
  for (const View* v : views) {
    uint64_t end = end_of(*v), away = lo < v->base ? v->base - lo : lo < end ? 0 : lo - end + 1;
    if (away < least) best = v, least = away;
  }
  return *best;
}

Tensors::Tensors(const Spec& spec) {
  for (uint64_t i = 0; i < spec.region_count; ++i) {
    const Region& r = spec.regions[i];
    Tensor t{&r, {}, Bits(r.bytes), {}};
    for (uint64_t v = 0; v < spec.view_count; ++v)
      if (spec.views[v].region == i) t.views.push_back(&spec.views[v]);
    tensors_.push_back(std::move(t));
  }
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) {
    return a.region->base < b.region->base;
  });
}

Tensor* Tensors::find(uint64_t at) {
  Tensor* guard = nullptr;
  for (Tensor& t : tensors_) {
    const Region& r = *t.region;
    if (at >= r.base && at < r.base + r.bytes) return &t;
    if (at + r.before >= r.base && at < r.base + r.bytes + r.after) guard = &t;
  }
  return guard;
}

void describe(char (&text)[256], const Tensor& tensor, uint64_t lo, uint64_t bytes) {
  if (tensor.views.empty()) {
    int64_t at = int64_t(lo - tensor.region->base);
    std::snprintf(text, sizeof text, "%s: bytes [%lld, %lld)", tensor.region->name, (long long)at,
                  (long long)(at + int64_t(bytes)));
    return;
  }
  const View& v = tensor.nearest(lo);
  int64_t at = int64_t(lo - v.base), end = int64_t(end_of(v) - v.base);
  int n = std::snprintf(text, sizeof text, "%s: bytes [%lld, %lld)", v.name, (long long)at,
                        (long long)(at + int64_t(bytes)));
  char* rest = text + n;
  size_t room = sizeof text - size_t(n);
  if (at < 0)
    std::snprintf(rest, room, ", %lld before its first byte", (long long)-at);
  else if (at + int64_t(bytes) > end)
    std::snprintf(rest, room, ", %lld past the end of its %lld",
                  (long long)(at + int64_t(bytes) - end), (long long)end);
  else
    std::snprintf(rest, room, ", between the rows of a strided tensor");
}

}  // namespace ak::judge
