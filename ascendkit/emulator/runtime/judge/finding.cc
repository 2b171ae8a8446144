#include "runtime/judge/finding.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace ak {
namespace {
auto key(const Finding& f) {
  return std::tuple(std::string(f.code), f.site, f.other_site, f.aic, f.pipe, f.other_aic,
                    f.other_pipe, f.space, f.write, f.other_write, f.part);
}
auto place(const Finding& f) {
  return std::tuple(f.block, f.sub, f.base, f.bytes, f.other_block, f.other_sub,
                    std::string(f.detail));
}
std::mutex mutex;
std::map<decltype(key(Finding{})), Finding> found;
std::vector<Finding> sorted;
}  // namespace

void report(const Finding& finding) {
  std::lock_guard<std::mutex> hold(mutex);
  auto [it, fresh] = found.try_emplace(key(finding), finding);
  Finding& kept = it->second;
  uint64_t count = (fresh ? 0 : kept.count) + std::max<uint64_t>(1, finding.count);
  if (!fresh && place(finding) < place(kept)) kept = finding;
  kept.count = count;
}

}  // namespace ak

extern "C" {
uint64_t ak_findings(const ak::Finding** out) {
  std::lock_guard<std::mutex> hold(ak::mutex);
  ak::sorted.clear();
  for (auto& [_, finding] : ak::found) ak::sorted.push_back(finding);
  *out = ak::sorted.data();
  return ak::sorted.size();
}
void ak_clear_findings() {
  std::lock_guard<std::mutex> hold(ak::mutex);
  ak::found.clear();
}
uint32_t ak_finding_bytes() { return sizeof(ak::Finding); }
}
