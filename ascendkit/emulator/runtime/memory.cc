#include "memory.h"

#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace ak {
namespace {
uint8_t* map_guarded(uint64_t bytes) {
  void* p = mmap(nullptr, bytes + 2 * kGuardBytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  auto* body = static_cast<uint8_t*>(p) + kGuardBytes;
  uint64_t pages = (bytes + 4095) & ~uint64_t(4095);
  if (mprotect(body, pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return body;
}

// Large in every float format and as an integer, but finite; neighbours have opposite signs.
inline uint8_t poison_at(uint64_t at, Poison kind) {
  constexpr uint8_t kLarge = 0x7b;
  if (kind == Poison::Ones) return kPoison;
  return kLarge | uint8_t(((at / 4 & 1) ^ uint64_t(kind == Poison::Opposite)) << 7);
}

std::mutex bank_mutex;
std::vector<Bank*> bank_pool;
}  // namespace

uint8_t* Bank::of(Space space, uint32_t sub) const {
  switch (space) {
    case Space::UB:
      return ub[sub];
    case Space::L1:
      return l1;
    case Space::L0A:
      return l0a;
    case Space::L0B:
      return l0b;
    case Space::L0C:
      return l0c;
    case Space::BT:
      return bt;
    case Space::FB:
      return fb;
    case Space::MXA:
      return mxa;
    case Space::MXB:
      return mxb;
    case Space::SS:
      return ss;
    case Space::GM:
      break;
  }
  return nullptr;
}

uint64_t capacity(Space space) {
  constexpr uint64_t bytes[] = {~uint64_t(0), kUbBytes,    kL1Bytes, kL0ABytes,
                                kL0BBytes,    kL0CBytes,   kBtBytes, kFbBytes,
                                kScaleBytes,  kScaleBytes, kSsBytes};
  return bytes[int(space)];
}

const char* space_name(Space space) {
  constexpr const char* names[] = {
      "GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "L0A scale area", "L0B scale area", "SS"};
  return names[int(space)];
}

void fill_poison(uint8_t* memory, uint64_t at, uint64_t bytes, Poison kind) {
  if (kind == Poison::Ones) {
    std::memset(memory, kPoison, bytes);
    return;
  }
  for (uint64_t i = 0; i < bytes; ++i) memory[i] = poison_at(at + i, kind);
}

Bank* acquire_bank(bool cube, uint32_t vector_cores, const Poisoning& poison) {
  Bank* bank = nullptr;
  {
    std::lock_guard<std::mutex> hold(bank_mutex);
    if (!bank_pool.empty()) bank = bank_pool.back(), bank_pool.pop_back();
  }
  if (!bank) {
    bank = new Bank;
    for (auto& u : bank->ub) u = map_guarded(kUbBytes);
    bank->l1 = map_guarded(kL1Bytes);
    bank->l0a = map_guarded(kL0ABytes);
    bank->l0b = map_guarded(kL0BBytes);
    bank->l0c = map_guarded(kL0CBytes);
    bank->bt = map_guarded(kBtBytes);
    bank->fb = map_guarded(kFbBytes);
    bank->mxa = map_guarded(kScaleBytes);
    bank->mxb = map_guarded(kScaleBytes);
    // Its end lies on the guard, so that running over it is seen.
    bank->ss = map_guarded(kSsBytes) + (4096 - kSsBytes % 4096) % 4096;
  }
  auto fill = [&](Space s, uint32_t sub) {
    uint8_t* memory = bank->of(s, sub);
    fill_poison(memory, 0, capacity(s), poison.count ? Poison::Ones : poison.kind);
    for (uint32_t i = 0; i < poison.count; ++i) {
      const PoisonRange& r = poison.ranges[i];
      if (r.space == uint32_t(s) && r.sub == sub && r.base + r.bytes <= capacity(s))
        fill_poison(memory + r.base, r.base, r.bytes, poison.kind);
    }
  };
  for (uint32_t i = 0; i < vector_cores; ++i) fill(Space::UB, i);
  if (cube)
    for (Space s : {Space::L1, Space::L0A, Space::L0B, Space::L0C, Space::BT, Space::FB, Space::MXA,
                    Space::MXB})
      fill(s, 0);
  if (cube && vector_cores) std::memset(bank->ss, kPoison, kSsBytes);
  return bank;
}

Bank* blind_bank() {
  static Bank bank = [] {
    Bank b{};
    for (auto& u : b.ub) {
      u = map_guarded(kUbBytes);
      mprotect(u, kUbBytes, PROT_NONE);
    }
    b.ss = map_guarded(4096);
    mprotect(b.ss, 4096, PROT_NONE);
    return b;
  }();
  return &bank;
}

void release_bank(Bank* bank) {
  if (bank == blind_bank()) return;
  std::lock_guard<std::mutex> hold(bank_mutex);
  bank_pool.push_back(bank);
}

}  // namespace ak

// What Python does to whole tensors, at the speed of one thread and without temporary arrays.
extern "C" {
AK_API void ak_poison(uint8_t* memory, const uint8_t* where, uint64_t bytes, uint32_t kind) {
  auto at = uint64_t(memory);
  for (uint64_t i = 0; i < bytes; ++i)
    memory[i] = where[i] ? ak::poison_at(at + i, ak::Poison(kind)) : memory[i];
}
AK_API uint32_t ak_same(const uint8_t* one, const uint8_t* two, uint64_t bytes) {
  return std::memcmp(one, two, bytes) == 0;
}
}
