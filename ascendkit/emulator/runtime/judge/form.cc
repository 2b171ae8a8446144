#include "runtime/judge/form.h"

#include <cstring>

namespace ak::judge {
namespace {
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
}  // namespace

Form form(const Slot& slot) {
  static thread_local std::vector<Form> known;
  if (slot.index >= known.size()) known.resize(slot.index + 64, Form::Unknown);
  Form& f = known[slot.index];
  if (f == Form::Unknown) f = form_of(slot);
  return f;
}

}  // namespace ak::judge
