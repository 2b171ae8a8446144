// The native merging-mode calls ::v*(dst, ..., mask, mode): inactive lanes keep the old
// destination.
#pragma once

#include "ak/cast.h"

namespace ak {
template <class T, class M>
inline void settle(Reg<T>& dst, const Reg<T>& result, const vector_bool& m, M) {
  if constexpr (tag::Mode(M{}) == tag::Mode::Merging) {
    for (int i = 0; i < Reg<T>::N; ++i)
      dst.lane[i] = active<T>(m, i) ? result.lane[i] : dst.lane[i];
  } else {
    dst = result;
  }
}
}  // namespace ak

#define AK_MERGE2(NAME, API)                                                                    \
  template <class T, class R, class M>                                                          \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, R b, const vector_bool& m, M mode) { \
    ak::Reg<T> r;                                                                               \
    API(r, a, b, m);                                                                            \
    ak::settle(dst, r, m, mode);                                                                \
    AK_OUT("::" #NAME, dst, sizeof(T));                                                         \
  }
AK_MERGE2(vadd, asc_add)
AK_MERGE2(vsub, asc_sub)
AK_MERGE2(vmul, asc_mul)
AK_MERGE2(vdiv, asc_div)
AK_MERGE2(vmax, asc_max)
AK_MERGE2(vmin, asc_min)
AK_MERGE2(vabsdif, asc_abs_sub)
AK_MERGE2(vand, asc_and)
AK_MERGE2(vor, asc_or)
AK_MERGE2(vxor, asc_xor)
AK_MERGE2(vshl, asc_shiftleft)
AK_MERGE2(vshr, asc_shiftright)
AK_MERGE2(vadds, asc_add_scalar)
AK_MERGE2(vmuls, asc_mul_scalar)
AK_MERGE2(vmaxs, asc_max_scalar)
AK_MERGE2(vmins, asc_min_scalar)
AK_MERGE2(vshls, asc_shiftleft_scalar)
AK_MERGE2(vshrs, asc_shiftright_scalar)
#undef AK_MERGE2

#define AK_MERGE1(NAME, API)                                                               \
  template <class T, class M>                                                              \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m, M mode) { \
    ak::Reg<T> r;                                                                          \
    API(r, a, m);                                                                          \
    ak::settle(dst, r, m, mode);                                                           \
    AK_OUT("::" #NAME, dst, sizeof(T));                                                    \
  }
AK_MERGE1(vexp, asc_exp)
AK_MERGE1(vln, asc_ln)
AK_MERGE1(vsqrt, asc_sqrt)
AK_MERGE1(vabs, asc_abs)
AK_MERGE1(vneg, asc_neg)
AK_MERGE1(vrelu, asc_relu)
AK_MERGE1(vnot, asc_not)
AK_MERGE1(vcpadd, asc_pair_reduce_sum)
AK_MERGE1(vcgadd, asc_reduce_sum_datablock)
AK_MERGE1(vcgmax, asc_reduce_max_datablock)
AK_MERGE1(vcgmin, asc_reduce_min_datablock)
AK_MERGE1(vsqz, asc_squeeze)
#undef AK_MERGE1

// A full reduction merges only the lanes that hold its result: one for a sum, two for max and min.
#define AK_MERGE_REDUCE(NAME, API, LANES)                                                  \
  template <class D, class T, class M>                                                     \
  AK_INSTR void NAME(ak::Reg<D>& dst, const ak::Reg<T>& a, const vector_bool& m, M mode) { \
    ak::Reg<D> r;                                                                          \
    API(r, a, m);                                                                          \
    auto written = ak::make_mask<ak::uint_of<D>>([](int i) { return i < LANES; });         \
    ak::settle(dst, r, written, mode);                                                     \
    AK_OUT("::" #NAME, dst, sizeof(D));                                                    \
  }
AK_MERGE_REDUCE(vcadd, asc_reduce_sum, 1)
AK_MERGE_REDUCE(vcmax, asc_reduce_max, 2)
AK_MERGE_REDUCE(vcmin, asc_reduce_min, 2)
#undef AK_MERGE_REDUCE

#define AK_MERGE_FMA(NAME, API)                                                                 \
  template <class T, class S, class M>                                                          \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, S b, const vector_bool& m, M mode) { \
    ak::Reg<T> r = dst;                                                                         \
    API(r, a, b, m);                                                                            \
    ak::settle(dst, r, m, mode);                                                                \
    AK_OUT("::" #NAME, dst, sizeof(T));                                                         \
  }
AK_MERGE_FMA(vmula, asc_mula)
AK_MERGE_FMA(vmadd, asc_madd)
AK_MERGE_FMA(vaxpy, asc_axpy)
#undef AK_MERGE_FMA

// vdup broadcasts a scalar, or a register's lowest or highest lane when a position is given.
template <class T, class S, class M>
AK_INSTR void vdup(ak::Reg<T>& dst, S scalar, const vector_bool& m, M mode) {
  ak::Reg<T> r;
  asc_duplicate_scalar(r, scalar, m);
  ak::settle(dst, r, m, mode);
  AK_OUT("::vdup", dst, sizeof(T));
}
template <class T, class P, class M>
AK_INSTR void vdup(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m, P, M mode) {
  ak::Reg<T> r;
  if constexpr (ak::tag::Pos(P{}) == ak::tag::Pos::Lowest)
    asc_duplicate(r, a, m);
  else
    asc_duplicate_highest(r, a, m);
  ak::settle(dst, r, m, mode);
  AK_OUT("::vdup.lane", dst, sizeof(T));
}
