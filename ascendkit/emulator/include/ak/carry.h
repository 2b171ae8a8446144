// 32-bit carry chains and the widening multiply. A subtraction's carry means "no borrow".
#pragma once

#include "ak/arith.h"

namespace ak {
template <bool SUB>
inline void add_with_carry(vector_bool& carry, vector_u32& dst, const vector_u32& a,
                           const vector_u32& b, const vector_bool* carry_in, const vector_bool& m) {
  vector_bool out{};
  for (int i = 0; i < vector_u32::N; ++i) {
    bool on = active<uint32_t>(m, i);
    uint64_t cin = carry_in ? active<uint32_t>(*carry_in, i) : SUB;
    uint64_t sum = uint64_t(a.lane[i]) + (SUB ? uint32_t(~b.lane[i]) : b.lane[i]) + cin;
    dst.lane[i] = on ? uint32_t(sum) : 0;
    out.bit[4 * i] = on && (sum >> 32);
  }
  carry = out;
}
}  // namespace ak

AK_INSTR void asc_add(vector_bool& carry, vector_u32& dst, const vector_u32& a, const vector_u32& b,
                      const vector_bool& m) {
  ak::add_with_carry<false>(carry, dst, a, b, nullptr, m);
  AK_OUT("asc_add.carry", carry, 4);
}
AK_INSTR void asc_sub(vector_bool& carry, vector_u32& dst, const vector_u32& a, const vector_u32& b,
                      const vector_bool& m) {
  ak::add_with_carry<true>(carry, dst, a, b, nullptr, m);
  AK_OUT("asc_sub.carry", carry, 4);
}
AK_INSTR void asc_addc(vector_bool& carry, vector_u32& dst, const vector_u32& a,
                       const vector_u32& b, const vector_bool& carry_in, const vector_bool& m) {
  ak::add_with_carry<false>(carry, dst, a, b, &carry_in, m);
  AK_OUT("asc_addc", dst, 4);
}
AK_INSTR void asc_subc(vector_bool& carry, vector_u32& dst, const vector_u32& a,
                       const vector_u32& b, const vector_bool& carry_in, const vector_bool& m) {
  ak::add_with_carry<true>(carry, dst, a, b, &carry_in, m);
  AK_OUT("asc_subc", dst, 4);
}

template <class T>
AK_INSTR void asc_mull(ak::Reg<T>& low, ak::Reg<T>& high, const ak::Reg<T>& a, const ak::Reg<T>& b,
                       const vector_bool& m) {
  static_assert(sizeof(T) == 4, "asc_mull multiplies 32-bit lanes");
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (int i = 0; i < ak::Reg<T>::N; ++i) {
    uint64_t p = ak::active<T>(m, i) ? uint64_t(Wide(a.lane[i]) * Wide(b.lane[i])) : 0;
    low.lane[i] = T(p), high.lane[i] = T(p >> 32);
  }
  AK_OUT("asc_mull", high, 4);
}
