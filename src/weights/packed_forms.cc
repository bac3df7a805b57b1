// The table of packed forms: a new one is a line here and its `decode`. So far the published files
// that Braid reads need none.
#include "weights/packed_form.h"

namespace braid {

const std::vector<PackedForm>& known_packed_forms() {
  static const std::vector<PackedForm> kForms = {};
  return kForms;
}

}  // namespace braid
