// Comparisons into predicates, selection, broadcast and ramps.
#pragma once

#include "ak/carry.h"

#define AK_COMPARE(NAME, OP)                                                           \
  template <class T>                                                                   \
  AK_INSTR void asc_##NAME(vector_bool& dst, const ak::Reg<T>& a, const ak::Reg<T>& b, \
                           const vector_bool& m) {                                     \
    vector_bool r;                                                                     \
    auto* word = reinterpret_cast<ak::uint_of<T>*>(r.bit);                             \
    const auto* mask = reinterpret_cast<const ak::uint_of<T>*>(m.bit);                 \
    for (int i = 0; i < ak::Reg<T>::N; ++i)                                            \
      word[i] = ak::uint_of<T>((a.lane[i] OP b.lane[i]) & mask[i] & 1);                \
    dst = r;                                                                           \
    AK_OUT("asc_" #NAME, dst, sizeof(T));                                              \
  }                                                                                    \
  template <class T, class S>                                                          \
  AK_INSTR void asc_##NAME##_scalar(vector_bool& dst, const ak::Reg<T>& a, S scalar,   \
                                    const vector_bool& m) {                            \
    vector_bool r;                                                                     \
    auto* word = reinterpret_cast<ak::uint_of<T>*>(r.bit);                             \
    const auto* mask = reinterpret_cast<const ak::uint_of<T>*>(m.bit);                 \
    T b = ak::scalar_to<T>(scalar);                                                    \
    for (int i = 0; i < ak::Reg<T>::N; ++i)                                            \
      word[i] = ak::uint_of<T>((a.lane[i] OP b) & mask[i] & 1);                        \
    dst = r;                                                                           \
    AK_OUT("asc_" #NAME "_scalar", dst, sizeof(T));                                    \
  }
AK_COMPARE(eq, ==)
AK_COMPARE(ne, !=)
AK_COMPARE(gt, >)
AK_COMPARE(ge, >=)
AK_COMPARE(lt, <)
AK_COMPARE(le, <=)
#undef AK_COMPARE

template <class T>
AK_INSTR void asc_select(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b,
                         const vector_bool& m) {
#pragma GCC ivdep
  for (int i = 0; i < ak::Reg<T>::N; ++i) dst.lane[i] = ak::active<T>(m, i) ? a.lane[i] : b.lane[i];
  AK_OUT("asc_select", dst, sizeof(T));
}

template <class T, class S>
AK_INSTR void asc_duplicate_scalar(ak::Reg<T>& dst, S scalar, const vector_bool& m) {
  T v = ak::scalar_to<T>(scalar);
  ak::Reg<T> r;
  for (int i = 0; i < ak::Reg<T>::N; ++i) r.lane[i] = ak::active<T>(m, i) ? v : T{};
  dst = r;
  AK_OUT("asc_duplicate_scalar", dst, sizeof(T));
}
namespace ak {
template <class T>
inline void broadcast_lane(Reg<T>& dst, const Reg<T>& a, int from, const vector_bool& m) {
  T v = a.lane[from];
  for (int i = 0; i < Reg<T>::N; ++i) dst.lane[i] = active<T>(m, i) ? v : T{};
}
}  // namespace ak
template <class T>
AK_INSTR void asc_duplicate(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::broadcast_lane(dst, a, 0, m);
  AK_OUT("asc_duplicate", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_duplicate_highest(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::broadcast_lane(dst, a, ak::Reg<T>::N - 1, m);
  AK_OUT("asc_duplicate_highest", dst, sizeof(T));
}

template <class T, class S>
AK_INSTR void asc_arange(ak::Reg<T>& dst, S first) {
  for (int i = 0; i < ak::Reg<T>::N; ++i)
    dst.lane[i] = T(ak::compute_of<T>(ak::scalar_to<T>(first)) + ak::compute_of<T>(i));
  AK_OUT("asc_arange", dst, sizeof(T));
}
template <class T, class S>
AK_INSTR void asc_arange_descend(ak::Reg<T>& dst, S first) {
  for (int i = 0; i < ak::Reg<T>::N; ++i)
    dst.lane[i] = T(ak::compute_of<T>(ak::scalar_to<T>(first)) - ak::compute_of<T>(i));
  AK_OUT("asc_arange_descend", dst, sizeof(T));
}
