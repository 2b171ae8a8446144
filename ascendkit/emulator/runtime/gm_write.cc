#include "gm_write.h"

#include "ak/lane_math.h"
#include "record.h"

namespace ak {
namespace {
// One lock for all atomics of the launch: contention is between two or three host threads.
std::mutex atomic_mutex;
thread_local bool in_atomic = false;

template <class T>
void combine(T* dst, const T* src, uint64_t n, Atomic op) {
  using C = compute_of<T>;
  for (uint64_t i = 0; i < n; ++i) {
    T a, b;
    std::memcpy(&a, dst + i, sizeof(T)), std::memcpy(&b, src + i, sizeof(T));
    C x = C(a), y = C(b);
    T r = T(op == Atomic::Add   ? lane::add<C>(x, y)
            : op == Atomic::Max ? lane::max<C>(x, y)
                                : lane::min<C>(x, y));
    std::memcpy(dst + i, &r, sizeof(T));
  }
}
}  // namespace

uint32_t dtype_bytes(Dtype type) {
  switch (type) {
    case Dtype::F32:
    case Dtype::S32:
    case Dtype::U32:
      return 4;
    case Dtype::F16:
    case Dtype::BF16:
    case Dtype::S16:
    case Dtype::U16:
      return 2;
    default:
      return 1;
  }
}

void write_gm(void* dst, const void* src, uint64_t bytes, Atomic op, Dtype type) {
  if (op == Atomic::None) {
    std::memcpy(dst, src, bytes);
    return;
  }
  uint64_t n = bytes / dtype_bytes(type);
  simt_atomic_lock();
  switch (type) {
    case Dtype::F32:
      combine(static_cast<float*>(dst), static_cast<const float*>(src), n, op);
      break;
    case Dtype::F16:
      combine(static_cast<half*>(dst), static_cast<const half*>(src), n, op);
      break;
    case Dtype::BF16:
      combine(static_cast<bfloat16_t*>(dst), static_cast<const bfloat16_t*>(src), n, op);
      break;
    case Dtype::S32:
      combine(static_cast<int32_t*>(dst), static_cast<const int32_t*>(src), n, op);
      break;
    case Dtype::S16:
      combine(static_cast<int16_t*>(dst), static_cast<const int16_t*>(src), n, op);
      break;
    case Dtype::S8:
      combine(static_cast<int8_t*>(dst), static_cast<const int8_t*>(src), n, op);
      break;
    default:  // set_atomic knows these types only
      __builtin_unreachable();
  }
  simt_atomic_unlock();
}

void simt_atomic_lock() {
  atomic_mutex.lock();
  in_atomic = true;
}
void simt_atomic_unlock() {
  in_atomic = false;
  atomic_mutex.unlock();
}
bool holds_atomic() { return in_atomic; }
void release_atomics() {
  if (in_atomic) simt_atomic_unlock();
}

}  // namespace ak
