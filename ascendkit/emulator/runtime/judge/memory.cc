#include "runtime/judge/memory.h"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "runtime/judge/finding.h"
#include "runtime/judge/tensors.h"

namespace ak::judge {
namespace {
constexpr uint64_t kLine = 32;  // bytes that memories move at once, on chip and to global memory

// Instructions whose data goes from one place to another unchanged, or that need a closer look.
enum class Form : uint8_t {
  Unknown,  // not looked up yet
  Plain,
  Nothing,
  Gm2Ub,
  Ub2Gm,
  RowByRow,   // source and destination rows correspond
  Transpose,  // L1 -> L0
  Product,
  ScaledProduct,
  FixPipe,
  Sort,
  Raw,
};
Form form_of(const Slot& slot) {
  struct Named {
    const char* name;
    Form form;
  };
  constexpr Named named[] = {{"asc_copy_gm2ub_align", Form::Gm2Ub},
                             {"asc_copy_ub2gm_align", Form::Ub2Gm},
                             {"asc_copy_ub2l1", Form::RowByRow},
                             {"asc_copy_l12l0a", Form::RowByRow},
                             {"asc_copy_l12l0b", Form::RowByRow},
                             {"asc_copy_l12l0a_mx", Form::RowByRow},
                             {"asc_copy_l12l0b_mx", Form::RowByRow},
                             {"asc_copy_l12l0a_transpose", Form::Transpose},
                             {"asc_copy_l12l0b_transpose", Form::Transpose},
                             {"asc_mmad", Form::Product},
                             {"asc_mmad_mx", Form::ScaledProduct},
                             {"asc_copy_l0c2gm", Form::FixPipe},
                             {"asc_copy_l0c2ub", Form::FixPipe},
                             {"Sort", Form::Sort},
                             {"raw", Form::Raw}};
  for (const Named& n : named)
    if (std::strcmp(n.name, slot.name) == 0) return n.form;
  return Form::Plain;
}
Form form(const Slot& slot) {
  static thread_local std::vector<Form> known;
  if (slot.index >= known.size()) known.resize(slot.index + 64, Form::Unknown);
  Form& f = known[slot.index];
  if (f == Form::Unknown) f = form_of(slot);
  return f;
}

struct LaunchMemory : State {
  explicit LaunchMemory(const Spec& spec) : tensors(spec) {}
  Tensors tensors;
  std::mutex mutex;
  std::vector<Candidate> candidates;
  std::vector<Edge> edges;
  bool order_matters = false;
};
// What outlives the launch, for Python to read.
std::vector<Candidate> last_candidates;
std::vector<Tensor> last_tensors;
const Region* last_regions = nullptr;
bool last_order_matters = false;
// A byte of global memory whose writers are asked for, and the last of them.
uint64_t watched_byte = 0;
Finding last_writer{};

struct BlockMemory : State {
  Bits defined[16][2];  // by space and vector core
  std::vector<Candidate> candidates;
  std::vector<Edge> edges;
  bool order_matters = false;
  Tensor* tensor = nullptr;  // of the last access
};

// One record on its way through the judge.
class Look {
 public:
  Look(Core& c, const RecordHead& h)
      : head_(h),
        block_(*static_cast<BlockMemory*>(c.block->judges.of[kMemory])),
        spec_(c.block->launch->spec),
        launch_(*static_cast<LaunchMemory*>(c.block->launch->judges.of[kMemory])),
        data_(!(spec_.flags & kControl)),
        advice_(spec_.flags & kAdvice) {}

  void run(Form form, const Slot& slot, const Access* a, uint32_t n) {
    Action action = Action(slot.action);
    block_.order_matters |= action == Action::Atomic || action == Action::LoadDev;
    for (uint32_t i = 0; i < n; ++i)
      if (Space(a[i].space) == Space::GM) global(a[i], form);
    if (!data_) return;
    switch (form) {
      case Form::Gm2Ub:
        bursts(a[0], a[1], a[0].row_bytes);
        return copy_in(a[0], a[1]);
      case Form::Ub2Gm:
        bursts(a[1], a[0], a[0].row_bytes);
        block_.order_matters |= head_.argument[0] != 0;
        return store(a[0], a[1]);
      case Form::RowByRow:
        for (uint32_t r = 0; r < std::min(a[0].rows, a[1].rows); ++r)
          bits(a[1]).copy(at(a[1], r), bits(a[0]), at(a[0], r), a[0].row_bytes);
        return;
      case Form::Transpose:
        return transpose(a[0], a[1]);
      case Form::Product:
      case Form::ScaledProduct:
        return product(a, form == Form::ScaledProduct);
      case Form::FixPipe:
        if (Space(a[1].space) == Space::GM)
          store(a[0], a[1]);
        else
          plain(a, n);
        return;
      case Form::Sort:  // leaves its source and work space in no state to rely on
        plain(a, n);
        for (uint32_t i : {1u, 4u}) bits(a[i]).fill(a[i].base, a[i].base + a[i].row_bytes, false);
        return;
      default:
        return plain(a, n);
    }
  }

 private:
  static uint64_t at(const Access& a, uint64_t row) {
    return a.base + uint64_t(a.stride * int64_t(row));
  }
  Bits& bits(const Access& a) {
    Bits& b = block_.defined[a.space][Space(a.space) == Space::UB ? a.sub : 0];
    if (!b.size()) b = Bits(capacity(Space(a.space)));
    return b;
  }
  Finding finding(const char* code, const Access& a, uint64_t base, uint64_t bytes) const {
    Finding f{};
    std::snprintf(f.code, sizeof f.code, "%s", code);
    f.site = head_.site, f.block = head_.block, f.aic = head_.aic, f.sub = head_.sub;
    f.pipe = head_.pipe, f.space = a.space, f.write = a.write;
    f.base = base, f.bytes = bytes, f.count = 1;
    return f;
  }
  void candidate(const Access& a, uint64_t base, uint64_t end) {
    bool gm = Space(a.space) == Space::GM;
    uint32_t region = gm ? uint32_t(block_.tensor->region - spec_.regions) : 0;
    for (Candidate& c : block_.candidates)
      if (c.site == head_.site && c.space == a.space && c.sub == a.sub && c.region == region) {
        c.base = std::min(c.base, base), c.end = std::max(c.end, end), ++c.count;
        return;
      }
    block_.candidates.push_back(
        {head_.site, head_.block, a.space, a.sub, head_.aic, head_.pipe, region, base, end, 1});
  }

  // ---- global memory
  void global(const Access& a, Form form) {
    if (a.rows == 0 || a.row_bytes == 0) return;
    uint64_t first = a.base, last = at(a, a.rows - 1);
    uint64_t lo = std::min(first, last), bytes = std::max(first, last) + a.row_bytes - lo;
    Tensor* t = block_.tensor;
    if (!t || lo < t->region->base || lo >= t->region->base + t->region->bytes)
      t = block_.tensor = launch_.tensors.find(lo);
    if (!t) return;  // an address that the kernel read from memory
    if (!t->holds(lo, bytes)) outside(*t, a, form);
    if (a.write) written(*t, a);
  }
  // Rows that leave the view, one finding an instruction.
  void outside(Tensor& t, const Access& a, Form form) {
    for (uint32_t r = 0; r < a.rows; ++r) {
      uint64_t lo = at(a, r);
      if (t.holds(lo, a.row_bytes)) continue;
      const Region& region = *t.region;
      bool inside = lo >= region.base && lo + a.row_bytes <= region.base + region.bytes;
      const char* code = inside              ? (a.write ? "AK-BOUNDS-005" : "AK-BOUNDS-006")
                         : form == Form::Raw ? "AK-BOUNDS-001"
                                             : "AK-BOUNDS-002";
      Finding f = finding(code, a, lo, a.row_bytes);
      describe(f.detail, t, lo, a.row_bytes);
      report(f);
      return;
    }
  }
  void written(Tensor& t, const Access& a) {
    uint64_t base = t.region->base, end = base + t.region->bytes;
    if (watched_byte - base < t.region->bytes) watch(a);
    bool whole = a.row_bytes % kLine == 0 && a.base % kLine == 0 && a.stride % int(kLine) == 0;
    for (uint32_t r = 0; r < a.rows; ++r) {
      uint64_t lo = at(a, r), hi = std::min(lo + a.row_bytes, end);
      if (lo < base || lo >= hi) continue;
      t.written.fill_shared(lo - base, hi - base);
      if (whole || !advice_) continue;
      if (lo % kLine) edge(lo / kLine);
      if (hi % kLine && (hi / kLine != lo / kLine || lo % kLine == 0)) edge(hi / kLine);
    }
  }
  void watch(const Access& a) {
    for (uint32_t r = 0; r < a.rows; ++r) {
      if (watched_byte - at(a, r) >= a.row_bytes) continue;
      std::lock_guard<std::mutex> hold(launch_.mutex);
      last_writer = finding("", a, watched_byte, 1);
    }
  }
  void edge(uint64_t line) {
    auto& edges = block_.edges;
    if (!edges.empty() && edges.back().line == line && edges.back().sub == head_.sub &&
        edges.back().aic == head_.aic)
      return;
    edges.push_back({line, head_.block, head_.site, head_.aic, head_.sub, head_.pipe});
  }
  // The part of a row of global memory that has no value.
  std::pair<uint64_t, uint64_t> undefined(Tensor& t, uint64_t lo, uint64_t bytes) const {
    uint64_t base = t.region->base, first = 0, last = 0;
    if (!t.region->undefined || lo < base || lo + bytes > base + t.region->bytes) return {0, 0};
    for (uint64_t i = lo; i < lo + bytes; ++i)
      if (!t.defined(i - base)) {
        if (!last) first = i;
        last = i + 1;
      }
    return {first, last};
  }

  // ---- on chip
  void plain(const Access* a, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i)
      if (!a[i].write) read(a[i]);
    for (uint32_t i = 0; i < n; ++i) {
      if (!a[i].write || Space(a[i].space) == Space::GM) continue;
      Bits& b = bits(a[i]);
      for (uint32_t r = 0; r < a[i].rows; ++r) {
        uint64_t lo = at(a[i], r);
        b.fill(lo, std::min(lo + a[i].row_bytes, b.size()), true);
      }
    }
  }
  void read(const Access& a) {
    if (Space(a.space) == Space::GM) {
      if (Tensor* t = block_.tensor)
        for (uint32_t r = 0; t->region->undefined && r < a.rows; ++r) {
          auto [lo, hi] = undefined(*t, at(a, r), a.row_bytes);
          if (lo < hi) candidate(a, lo, hi);
        }
      return;
    }
    Bits& b = bits(a);
    for (uint32_t r = 0; r < a.rows; ++r) {
      uint64_t at_row = at(a, r), end = std::min(at_row + a.row_bytes, b.size());
      if (b.all(at_row, end)) continue;
      auto [lo, hi] = b.missing(at_row, end);
      candidate(a, lo, hi);
    }
  }
  void copy_in(const Access& from, const Access& to) {
    Bits& b = bits(to);
    for (uint32_t r = 0; r < to.rows; ++r) b.fill(at(to, r), at(to, r) + to.row_bytes, true);
    Tensor* t = block_.tensor;
    if (!t || !t->region->undefined) return;
    uint64_t left = head_.argument[0];  // bytes of padding before the row
    for (uint32_t r = 0; r < from.rows; ++r) {
      auto [lo, hi] = undefined(*t, at(from, r), from.row_bytes);
      if (lo >= hi) continue;
      candidate(from, lo, hi);
      for (uint64_t i = lo; i < hi; ++i)
        if (!t->defined(i - t->region->base)) {
          uint64_t byte = at(to, r) + left + (i - at(from, r));
          b.fill(byte, byte + 1, false);
        }
    }
  }
  // Bytes that nobody wrote go to global memory: what a copy moves is exact.
  void store(const Access& from, const Access& to) {
    Bits& b = bits(from);
    bool told = false;
    for (uint32_t r = 0; r < from.rows; ++r) {
      uint64_t lo = at(from, r), end = std::min(lo + from.row_bytes, b.size());
      if (b.all(lo, end)) continue;
      auto [first, last] = b.missing(lo, end);
      bool bytewise = Space(from.space) == Space::UB;  // others convert and reorder
      uint64_t where = bytewise ? at(to, r) + (first - lo) : to.base;
      unset(to, bytewise ? where : 0, last - first);
      if (told) continue;
      told = true;
      Finding f = finding("AK-UNINIT-001", from, first, last - first);
      if (Tensor* t = block_.tensor) {
        describe(f.detail, *t, where, last - first);
        if (char* end_of_range = std::strchr(f.detail, ')')) end_of_range[1] = 0;
      }
      report(f);
    }
  }
  // Notes that bytes of a tensor, all that `to` writes if `lo` is 0, hold nothing of use.
  void unset(const Access& to, uint64_t lo, uint64_t bytes) {
    Tensor* t = block_.tensor;
    if (!t) return;
    std::lock_guard<std::mutex> hold(launch_.mutex);
    uint64_t base = t->region->base, size = t->region->bytes;
    if (!t->unset.size()) t->unset = Bits(size);
    auto mark = [&](uint64_t from, uint64_t n) {
      if (from >= base && from + n <= base + size)
        t->unset.fill(from - base, from - base + n, true);
    };
    if (lo) return mark(lo, bytes);
    for (uint32_t r = 0; r < to.rows; ++r) mark(at(to, r), to.row_bytes);
  }
  // Element (row, column) becomes (column, row); see l0.cc for the geometry.
  void transpose(const Access& from, const Access& to) {
    Bits &source = bits(from), &target = bits(to);
    bool all = true;
    for (uint32_t r = 0; r < from.rows; ++r)
      all &= source.all(at(from, r), at(from, r) + from.row_bytes);
    for (uint32_t r = 0; r < to.rows; ++r) target.fill(at(to, r), at(to, r) + to.row_bytes, true);
    if (all || head_.argument[0] == 0) return;
    uint64_t element = head_.argument[0], c0 = 256 / element;  // bits, elements
    uint64_t row_count = from.row_bytes / 32, columns = from.rows * c0;
    for (uint64_t r = 0; r < row_count; ++r)
      for (uint64_t c = 0; c < columns; ++c) {
        uint64_t byte = at(from, c / c0) + r * 32 + (c % c0) * element / 8;
        if (source.test(byte)) continue;
        uint64_t place = at(to, r / c0) + (c / 16) * 512 + (c % 16) * 32 + (r % c0) * element / 8;
        target.fill(place, place + std::max<uint64_t>(1, element / 8), false);
      }
  }

  // ---- matrix unit
  // Rows below `rows` of whole groups of C0 columns are multiplied in; rows past it only make rows
  // of the result that nobody asked for.
  void operand(const Access& a, uint64_t rows, const char* name) {
    Bits& b = bits(a);
    uint64_t blocks = (rows + 15) / 16, groups = a.row_bytes / (blocks * 512);
    for (uint64_t g = 0; g < groups; ++g) {
      uint64_t lo = a.base + g * blocks * 512, end = lo + rows * 32;
      if (!b.all(lo, end)) return undefined_operand(a, b.missing(lo, end), name);
    }
  }
  void scales(Space space, uint64_t base, uint64_t rows, uint64_t pairs, const char* name) {
    Access a{uint8_t(space), 0, 0, 0, 1, base, 0, 0};
    Bits& b = bits(a);
    for (uint64_t block = 0; block * 16 < rows; ++block)
      for (uint64_t p = 0; p < pairs; ++p) {
        uint64_t lo = base + (block * pairs + p) * 32;
        uint64_t end = lo + 2 * std::min<uint64_t>(16, rows - block * 16);
        if (!b.all(lo, end)) return undefined_operand(a, b.missing(lo, end), name);
      }
  }
  void undefined_operand(const Access& a, std::pair<uint64_t, uint64_t> range, const char* name) {
    Finding f = finding("AK-UNINIT-002", a, range.first, range.second - range.first);
    f.write = 0;
    std::snprintf(f.detail, sizeof f.detail, "%s: %llu rows, %llu columns, K = %llu", name,
                  (unsigned long long)m(), (unsigned long long)n(), (unsigned long long)k());
    report(f);
  }
  uint64_t m() const { return head_.argument[0] >> 40; }
  uint64_t n() const { return head_.argument[0] >> 20 & 0xfffff; }
  uint64_t k() const { return head_.argument[0] & 0xfffff; }
  void product(const Access* a, bool scaled) {
    operand(a[0], m(), "operand A");
    operand(a[1], n(), "operand B");
    if (scaled) {
      scales(Space::MXA, a[0].base / 16, m(), (k() + 63) / 64, "scales of A");
      scales(Space::MXB, a[1].base / 16, n(), (k() + 63) / 64, "scales of B");
    }
    const Access& c = a[2];
    Bits& b = bits(c);
    uint64_t column_group = (m() + 15) / 16 * 1024;  // 16 columns of float32 or int32
    bool clear = head_.argument[1] >> 8 & 1;
    bool told = false;
    for (uint64_t g = 0; g * 16 < n(); ++g) {
      uint64_t lo = c.base + g * column_group, end = lo + m() * 64;
      if (!clear && !told && !b.all(lo, end))
        undefined_operand(c, b.missing(lo, end), "accumulator"), told = true;
      b.fill(lo, end, true);
    }
  }

  // ---- bursts
  void bursts(const Access& gm, const Access& chip, uint64_t length) {
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

  const RecordHead& head_;
  BlockMemory& block_;
  const Spec& spec_;
  LaunchMemory& launch_;
  bool data_, advice_;
};

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
}  // namespace

void memory_launch_start(Launch& launch) {
  launch.judges.of[kMemory] = new LaunchMemory(launch.spec);
}
void memory_block_start(Block& block) { block.judges.of[kMemory] = new BlockMemory; }

void memory_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses) {
  if (head.accesses) Look(core, head).run(form(slot), slot, accesses, head.accesses);
}

void memory_block_end(Block& block) {
  auto& mine = *static_cast<BlockMemory*>(block.judges.of[kMemory]);
  auto& all = *static_cast<LaunchMemory*>(block.launch->judges.of[kMemory]);
  std::lock_guard<std::mutex> hold(all.mutex);
  all.order_matters |= mine.order_matters;
  all.edges.insert(all.edges.end(), mine.edges.begin(), mine.edges.end());
  for (const Candidate& c : mine.candidates) {
    auto same = std::find_if(all.candidates.begin(), all.candidates.end(), [&](const Candidate& o) {
      return o.site == c.site && o.space == c.space && o.sub == c.sub && o.region == c.region;
    });
    if (same == all.candidates.end()) {
      all.candidates.push_back(c);
      continue;
    }
    if (c.block < same->block) same->block = c.block, same->aic = c.aic, same->pipe = c.pipe;
    same->base = std::min(same->base, c.base), same->end = std::max(same->end, c.end);
    same->count += c.count;
  }
}

void memory_launch_end(Launch& launch) {
  auto& all = *static_cast<LaunchMemory*>(launch.judges.of[kMemory]);
  shared_lines(all.edges);
  std::sort(all.candidates.begin(), all.candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return std::tuple(a.site, a.space, a.sub, a.region) <
                     std::tuple(b.site, b.space, b.sub, b.region);
            });
  last_candidates = std::move(all.candidates);
  last_tensors = std::move(all.tensors.all());
  last_regions = launch.spec.regions;
  last_order_matters = all.order_matters;
}

}  // namespace ak::judge

extern "C" {
uint64_t ak_candidates(const ak::judge::Candidate** out) {
  *out = ak::judge::last_candidates.data();
  return ak::judge::last_candidates.size();
}
const uint64_t* ak_written(uint64_t region, uint32_t unset) {
  for (auto& t : ak::judge::last_tensors) {
    if (t.region != ak::judge::last_regions + region) continue;
    const ak::judge::Bits& bits = unset ? t.unset : t.written;
    return bits.none() ? nullptr : bits.words();
  }
  return nullptr;
}
void ak_watch(uint64_t address) {
  ak::judge::watched_byte = address;
  ak::judge::last_writer = {};
}
uint32_t ak_watched(ak::Finding* out) {
  *out = ak::judge::last_writer;
  ak::judge::watched_byte = 0;
  return out->count != 0;
}
uint32_t ak_order_matters() { return ak::judge::last_order_matters; }
}
